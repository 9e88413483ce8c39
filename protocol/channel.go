package protocol

// RoomChannel begins the names of rooms' channels.
const RoomChannel = "room:"

// NoChannel is the channel of what nobody in particular was told by nobody in particular: a person's word while there was
// no main.
const NoChannel = "_"

// ChannelKey names the channel in which e stands (wire 5.4): a room's, else its sender's; a person's words stand in that of
// whom they were said to.
func (e *Envelope) ChannelKey() string {
	switch {
	case e.Room != "":
		return RoomChannel + string(e.Room)
	case e.From != "":
		return string(e.From)
	case e.To != "":
		return string(e.To)
	}
	return NoChannel
}

// FoldChannel is what two spellings of one channel have in common.
func FoldChannel(key string) string { return string(FoldAgentID(AgentID(key))) }
