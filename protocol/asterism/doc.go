// Package asterism translates between the JSON frames of the public contract and protocol.Envelope, and keeps what one
// connection must remember to do so: its HELLO and its unfinished text streams. The hub's shell calls it for every frame
// on /ws, and the client commands for foreign boards. It refuses, by the name of the offending field, whatever could harm
// a reader behind it, and it knows no clock, dice or socket: times and ids come in as arguments.
// Functions and frames may be used from anywhere; an Encoder, a Session and a Streams belong to one goroutine each.
package asterism
