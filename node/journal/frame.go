package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// A frame is one commit in the file that commits go to first (ahead.go): a head of 48 bytes, the batch, and zeros to a
// multiple of frameAlign. Numbers in the head are little endian: magic (4 bytes), checksum of all behind it (4), length of the
// batch (4), zero (4), the commit's number (8), the store's tag (16), zero (8). In the batch every number is a varint and
// every text or blob has its length before it.
const (
	frameMagic = 0x31747361 // "ast1"
	frameHead  = 48
	frameAlign = 16
	frameMax   = math.MaxInt32
)

// storeTag says of which store a frame is, so that those of another one are not taken for its commits.
type storeTag [16]byte

func tagOf(storeID string) (t storeTag) {
	copy(t[:], storeID)
	return t
}

// appendFrame appends the frame of a batch whose hashes are filled in. texts are the texts of its logs.
func appendFrame(out []byte, tag storeTag, number uint64, b *Batch, text func(protocol.LogID) string) []byte {
	start := len(out)
	out = append(out, make([]byte, frameHead)...)
	out = appendBatch(out, b, text)
	head := out[start:]
	binary.LittleEndian.PutUint32(head, frameMagic)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(head)-frameHead))
	binary.LittleEndian.PutUint64(head[16:], number)
	copy(head[24:], tag[:])
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(head[8:], crcTable))
	return append(out, make([]byte, frameSize(len(head))-len(head))...)
}

// frameSize is what a frame of so many bytes takes in the file.
func frameSize(bytes int) int { return (bytes + frameAlign - 1) &^ (frameAlign - 1) }

// frame is one that was read.
type frame struct {
	number uint64
	tag    storeTag
	batch  []byte
	size   int // in the file
}

// readFrame reads the frame that raw begins with; false: there is no whole one.
func readFrame(raw []byte) (f frame, ok bool) {
	if len(raw) < frameHead || binary.LittleEndian.Uint32(raw) != frameMagic {
		return f, false
	}
	n := int64(binary.LittleEndian.Uint32(raw[8:]))
	if n > int64(len(raw)-frameHead) {
		return f, false
	}
	end := frameHead + int(n)
	if crc32.Checksum(raw[8:end], crcTable) != binary.LittleEndian.Uint32(raw[4:]) {
		return f, false
	}
	f = frame{number: binary.LittleEndian.Uint64(raw[16:]), batch: raw[frameHead:end], size: min(frameSize(end), len(raw))}
	copy(f.tag[:], raw[24:])
	return f, true
}

// begunFrame says whether raw begins with the head of a commit that was not finished, and how many bytes it would have.
func begunFrame(raw []byte, tag storeTag, number uint64) (bytes int64, ok bool) {
	if len(raw) < frameHead || binary.LittleEndian.Uint32(raw) != frameMagic || binary.LittleEndian.Uint64(raw[16:]) != number || storeTag(raw[24:40]) != tag {
		return 0, false
	}
	return frameHead + int64(binary.LittleEndian.Uint32(raw[8:])), true
}

func appendBatch(out []byte, b *Batch, text func(protocol.LogID) string) []byte {
	var logs []protocol.LogID
	place := func(id protocol.LogID) uint64 {
		i := slices.Index(logs, id)
		if i < 0 {
			i, logs = len(logs), append(logs, id)
		}
		return uint64(i)
	}
	for i := range b.Entries {
		place(b.Entries[i].Record.Log)
	}
	for i := range b.Inbox {
		place(b.Inbox[i].Log)
	}
	for i := range b.Tiers {
		place(b.Tiers[i].Log)
	}
	out = binary.AppendUvarint(out, uint64(len(logs)))
	for _, id := range logs {
		out = appendText(out, text(id))
	}
	out = binary.AppendUvarint(out, uint64(len(b.Entries)))
	for i := range b.Entries {
		e := &b.Entries[i]
		r := &e.Record
		void := uint64(0)
		if e.Void {
			void = 1
		}
		out = binary.AppendUvarint(out, place(r.Log)<<1|void)
		out = binary.AppendUvarint(out, r.Seq)
		out = append(append(out, r.Prev[:]...), e.Hash[:]...)
		out = binary.AppendVarint(binary.AppendUvarint(out, uint64(r.At)), r.Wall)
		out = appendText(appendText(appendText(out, string(r.Kind)), e.framedSig()), r.Body)
	}
	out = binary.AppendUvarint(out, uint64(len(b.Inbox)))
	for i := range b.Inbox {
		p := &b.Inbox[i]
		out = binary.AppendUvarint(binary.AppendUvarint(appendText(out, string(p.Agent)), place(p.Log)), p.Seq)
	}
	out = binary.AppendUvarint(out, uint64(len(b.Tiers)))
	for i := range b.Tiers {
		p := &b.Tiers[i]
		out = binary.AppendUvarint(binary.AppendUvarint(out, place(p.Log)), p.Seq)
		out = appendText(appendText(out, string(p.Tier)), string(p.Agent))
		out = binary.AppendVarint(binary.AppendUvarint(out, uint64(p.At)), p.Wall)
		out = appendText(appendText(out, string(p.By)), p.Reason)
	}
	out = binary.AppendUvarint(out, uint64(len(b.Renames)))
	for _, r := range b.Renames {
		out = appendText(appendText(out, string(r.From)), string(r.To))
	}
	out = binary.AppendUvarint(out, uint64(len(b.Left)))
	for _, agent := range b.Left {
		out = appendText(out, string(agent))
	}
	out = binary.AppendUvarint(out, uint64(len(b.Values)))
	for k, v := range b.Values {
		if out = appendText(out, k); v == nil {
			out = append(out, 0)
		} else {
			out = appendText(append(out, 1), v)
		}
	}
	return out
}

func appendText[T string | []byte](out []byte, s T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// errFrame says that a frame's batch is not one that appendBatch wrote.
var errFrame = errors.New("no batch")

// readBatch reads what appendBatch wrote. What it returns does not share memory with raw.
func readBatch(raw []byte) (Batch, error) {
	d := batchReader{rest: raw}
	var b Batch
	logs := make([]protocol.LogID, d.count(1))
	for i := range logs {
		var err error
		if logs[i], err = protocol.ParseLogID(d.text()); err != nil && !d.bad {
			return b, errFrame
		}
	}
	d.logs = logs
	for range d.count(64) {
		b.Entries = append(b.Entries, d.entry())
	}
	for range d.count(3) {
		b.Inbox = append(b.Inbox, InboxPut{Agent: protocol.AgentID(d.text()), Log: d.log(d.number()), Seq: d.number()})
	}
	for range d.count(8) {
		b.Tiers = append(b.Tiers, TierPut{
			Log: d.log(d.number()), Seq: d.number(), Tier: protocol.Tier(d.text()), Agent: protocol.AgentID(d.text()),
			At: protocol.HLC(d.number()), Wall: d.signed(), By: protocol.PeerID(d.text()), Reason: d.text(),
		})
	}
	for range d.count(2) {
		b.Renames = append(b.Renames, InboxRename{From: protocol.AgentID(d.text()), To: protocol.AgentID(d.text())})
	}
	for range d.count(1) {
		b.Left = append(b.Left, protocol.AgentID(d.text()))
	}
	for range d.count(2) {
		if b.Values == nil {
			b.Values = map[string][]byte{}
		}
		if k := d.text(); d.number() == 0 {
			b.Values[k] = nil
		} else {
			b.Values[k] = orEmpty(d.bytes())
		}
	}
	if d.bad || len(d.rest) > 0 {
		return Batch{}, errFrame
	}
	return b, nil
}

// batchReader reads the parts of a batch. After the first bad one all are zero.
type batchReader struct {
	rest []byte
	logs []protocol.LogID
	bad  bool
}

func (d *batchReader) entry() (e Entry) {
	which := d.number()
	e.Void = which&1 == 1
	r := &e.Record
	r.Log, r.Seq = d.log(which>>1), d.number()
	copy(r.Prev[:], d.take(uint64(len(r.Prev))))
	copy(e.Hash[:], d.take(uint64(len(e.Hash))))
	r.At, r.Wall = protocol.HLC(d.number()), d.signed()
	r.Kind, r.Sig, r.Body = protocol.Kind(d.text()), d.bytes(), d.bytes()
	if bytes.Equal(r.Sig, owedSig) {
		r.Sig, e.Sign = nil, true
	}
	return e
}

func (d *batchReader) fail() { d.bad, d.rest = true, nil }

func (d *batchReader) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *batchReader) signed() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count is a number of things that have at least least bytes each.
func (d *batchReader) count(least uint64) uint64 {
	n := d.number()
	if n > uint64(len(d.rest))/least {
		d.fail()
		return 0
	}
	return n
}

func (d *batchReader) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

// bytes is nil for none.
func (d *batchReader) bytes() []byte { return append([]byte(nil), d.take(d.number())...) }

func (d *batchReader) text() string { return string(d.take(d.number())) }

func (d *batchReader) log(i uint64) protocol.LogID {
	if i >= uint64(len(d.logs)) {
		d.fail()
		return protocol.LogID{}
	}
	return d.logs[i]
}
