package meshwire

import (
	"crypto/ed25519"
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

// RecordsFrameBytes is where SplitRecords begins a new frame: small enough that a live record behind a catch-up waits
// for little, large enough that the frame's own bytes do not count.
const RecordsFrameBytes = 128 << 10

// recordOverheadMax is what a record adds to its kind and body on the wire: keys, numbers, lengths, signature.
const recordOverheadMax = 128

type wRecords struct {
	Log   []byte `msgpack:"l"`
	First uint64 `msgpack:"f"`
	Prev  []byte `msgpack:"p"`
	Recs  []wRec `msgpack:"r"`
}

type wRec struct {
	At   uint64 `msgpack:"t"`
	Wall int64  `msgpack:"w"`
	Kind string `msgpack:"k"`
	Body []byte `msgpack:"b"`
	Sig  []byte `msgpack:"s"`
}

func fromRecords(r Records) (*wRecords, error) {
	var c ids
	log, err := c.fromLog(r.Log)
	if err != nil {
		return nil, err
	}
	w := &wRecords{Log: log, First: r.First, Recs: make([]wRec, len(r.Records))}
	if r.Prev != (protocol.Hash{}) {
		w.Prev = r.Prev[:]
	}
	for i, rec := range r.Records {
		w.Recs[i] = wRec{uint64(rec.At), rec.Wall, string(rec.Kind), rec.Body, rec.Sig}
	}
	return w, nil
}

func (w *wRecords) frame() (Frame, error) {
	var c ids
	r := Records{First: w.First}
	var err error
	if r.Log, err = c.toLog(w.Log); err != nil {
		return nil, err
	}
	if err := checkSeq("first", w.First, 1); err != nil {
		return nil, err
	}
	if r.Prev, err = toHash(w.Prev); err != nil {
		return nil, err
	}
	if (r.First == 1) != (r.Prev == protocol.Hash{}) {
		return nil, fmt.Errorf("%w: only the first record of a log has no predecessor", ErrBadFrame)
	}
	if len(w.Recs) == 0 {
		return nil, fmt.Errorf("%w: a range without records", ErrBadFrame)
	}
	r.Records = make([]Rec, len(w.Recs))
	for i, rec := range w.Recs {
		if err := checkTexts(field{"kind", rec.Kind, 32}); err != nil {
			return nil, err
		}
		if len(rec.Sig) != 0 && len(rec.Sig) != ed25519.SignatureSize {
			return nil, fmt.Errorf("%w: a signature of %d bytes", ErrBadFrame, len(rec.Sig))
		}
		if len(rec.Body) > protocol.RecordBytesMax {
			return nil, fmt.Errorf("%w: a body of %d bytes, at most %d", ErrBadFrame, len(rec.Body), protocol.RecordBytesMax)
		}
		r.Records[i] = Rec{protocol.HLC(rec.At), rec.Wall, protocol.Kind(rec.Kind), rec.Body, rec.Sig}
	}
	if len(r.Records[len(r.Records)-1].Sig) == 0 {
		return nil, fmt.Errorf("%w: a range that ends within a commit", ErrBadFrame)
	}
	return r, nil
}

// FromRecords makes a frame of a range of one log. rs must be a contiguous range that ends at a signed record; Encode
// and the receiver find out if it is not. Bodies and signatures are shared, not copied.
func FromRecords(rs []protocol.Record) Records {
	if len(rs) == 0 {
		return Records{}
	}
	r := Records{Log: rs[0].Log, First: rs[0].Seq, Prev: rs[0].Prev, Records: make([]Rec, len(rs))}
	for i := range rs {
		r.Records[i] = Rec{rs[i].At, rs[i].Wall, rs[i].Kind, rs[i].Body, rs[i].Sig}
	}
	return r
}

// ToRecords restores the records, each with the hash of the one before it (one SHA-256 a record). That their author
// wrote them is shown by protocol.VerifyCommits(records, r.Prev) alone.
func (r Records) ToRecords() []protocol.Record {
	out := make([]protocol.Record, len(r.Records))
	prev := r.Prev
	for i, rec := range r.Records {
		out[i] = protocol.Record{Log: r.Log, Seq: r.First + uint64(i), Prev: prev,
			At: rec.At, Wall: rec.Wall, Kind: rec.Kind, Body: rec.Body, Sig: rec.Sig}
		if i+1 < len(r.Records) {
			prev = out[i].Hash()
		}
	}
	return out
}

// SplitRecords makes frames of a contiguous range of one log, cut at signed records, each of about RecordsFrameBytes or
// of one commit. A commit that fits no frame gives ErrFrameTooLarge: an author signs often enough that none does (at
// least once in 512 KiB of bodies). A range that does not end at a signed record gives ErrBadFrame.
func SplitRecords(rs []protocol.Record) ([]Records, error) {
	var out []Records
	from, size, signed, signedSize := 0, 0, 0, 0 // signed: where the whole commits since from end
	for i := range rs {
		size += len(rs[i].Body) + len(rs[i].Kind) + recordOverheadMax
		if size > RecordsFrameBytes && signed > from {
			out = append(out, FromRecords(rs[from:signed]))
			from, size = signed, size-signedSize
		}
		if size > protocol.MeshFrameBytesMax-1024 || i-from >= elementsMax {
			return nil, fmt.Errorf("%w: a commit at %s seq %d", ErrFrameTooLarge, rs[i].Log, rs[i].Seq)
		}
		if len(rs[i].Sig) > 0 {
			signed, signedSize = i+1, size
		}
	}
	if signed < len(rs) {
		return nil, fmt.Errorf("%w: a range that ends within a commit", ErrBadFrame)
	}
	if from < len(rs) {
		out = append(out, FromRecords(rs[from:]))
	}
	return out, nil
}
