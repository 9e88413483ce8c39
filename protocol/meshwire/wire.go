package meshwire

import (
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

// The shapes on the wire of frames that carry no agents or blobs. Their keys are the format: golden_test.go holds it.

// shape is a frame as msgpack sees it.
type shape interface {
	// frame checks every field and gives the public form.
	frame() (Frame, error)
}

func wireOf(typ byte) shape {
	switch typ {
	case TypeHello:
		return &wHello{}
	case TypeVector:
		return &wVector{}
	case TypeRecords:
		return &wRecords{}
	case TypeHave:
		return &wHave{}
	case TypeNeed:
		return &wNeed{}
	case TypeLive:
		return &wLive{}
	case TypePresence:
		return &wPresence{}
	case TypeRoster:
		return &wRoster{}
	case TypeAddrs:
		return &wAddrs{}
	case TypeBlobGet:
		return &wBlobGet{}
	case TypeBlobData:
		return &wBlobData{}
	case TypePing:
		return &wPing{}
	case TypePong:
		return &wPong{}
	case TypeBye:
		return &wBye{}
	case TypeOffice:
		return &wOffice{}
	case TypeClaims:
		return &wClaims{}
	case TypeStarted:
		return &wStarted{}
	case TypeBase:
		return &wBase{}
	}
	return nil
}

// toWire gives f its shape. What it makes is checked as if it came from outside: our own mistakes must not reach a peer.
func toWire(f Frame) (shape, error) {
	s, err := shapeOf(f)
	if err != nil {
		return nil, err
	}
	if _, err := s.frame(); err != nil {
		return nil, err
	}
	return s, nil
}

func shapeOf(f Frame) (shape, error) {
	switch f := f.(type) {
	case Hello:
		return &wHello{f.Version, f.Mesh, appendStart(nil, f.Start), f.Name, string(f.Role), f.Board, f.Wall, f.Software}, nil
	case Vector:
		return fromVector(f)
	case Records:
		return fromRecords(f)
	case Have:
		marks, err := fromMarks(f.Marks)
		return &wHave{marks}, err
	case Need:
		var c ids
		log, err := c.fromLog(f.Log)
		return &wNeed{log, f.From, f.To}, err
	case Live:
		return &wLive{string(f.Agent), f.Kind, f.Frame}, nil
	case Presence:
		return &wPresence{appendStart(nil, f.Start), f.Counter, fromAgents(f.Agents), f.More}, nil
	case Roster:
		return fromRoster(f)
	case Addrs:
		var c ids
		key, err := c.keyOf(f.Peer)
		return &wAddrs{key, f.Addrs, f.At, f.Sig}, err
	case BlobGet:
		sum, err := fromSHA(f.SHA256)
		return &wBlobGet{sum, f.Offset, f.Length}, err
	case BlobData:
		sum, err := fromSHA(f.SHA256)
		return &wBlobData{sum, f.Offset, f.Total, f.Data, f.Missing, f.Left}, err
	case Ping:
		return &wPing{f.ID, f.Wall}, nil
	case Pong:
		return &wPong{f.ID, f.Wall}, nil
	case Bye:
		return &wBye{f.Reason, f.Code}, nil
	case Office:
		return fromOffice(f)
	case Claims:
		return fromClaims(f)
	case Started:
		var c ids
		key, err := c.keyOf(f.Peer)
		return &wStarted{key, appendStart(nil, f.Start), f.Sig}, err
	case Base:
		return &wBase{f.Digest[:], f.Bytes}, nil
	}
	return nil, fmt.Errorf("%w: no way to write a %T", ErrBadFrame, f)
}

type wHello struct {
	Version  int    `msgpack:"v"`
	Mesh     string `msgpack:"m"`
	Start    []byte `msgpack:"s"`
	Name     string `msgpack:"n"`
	Role     string `msgpack:"r"`
	Board    string `msgpack:"b"`
	Wall     int64  `msgpack:"w"`
	Software string `msgpack:"a"`
}

func (w *wHello) frame() (Frame, error) {
	start, err := startOf(w.Start)
	if err != nil {
		return nil, err
	}
	if err := checkRange("version", int64(w.Version), 1, 1<<20); err != nil {
		return nil, err
	}
	if err := checkTexts(field{"mesh", w.Mesh, 128}, field{"name", w.Name, 256}, field{"role", w.Role, 32},
		field{"board", w.Board, 256}, field{"software", w.Software, 128}); err != nil {
		return nil, err
	}
	return Hello{w.Version, w.Mesh, start, w.Name, protocol.Role(w.Role), w.Board, w.Wall, w.Software}, nil
}

type wMark struct {
	Log  []byte `msgpack:"l"`
	Seq  uint64 `msgpack:"q"`
	Hash []byte `msgpack:"h"`
}

type wPast struct {
	Author []byte `msgpack:"p"`
	Sum    []byte `msgpack:"d"`
}

type wVector struct {
	Marks []wMark  `msgpack:"m"`
	Past  []wPast  `msgpack:"p"`
	Of    [][]byte `msgpack:"o"`
	More  bool     `msgpack:"x"`
}

func fromVector(v Vector) (*wVector, error) {
	var c ids
	w := &wVector{More: v.More}
	var err error
	if w.Marks, err = fromMarks(v.Marks); err != nil {
		return nil, err
	}
	for i, m := range v.Marks {
		if m.Hash != [8]byte{} {
			w.Marks[i].Hash = m.Hash[:]
		}
	}
	for _, p := range v.Past {
		key, err := c.keyOf(p.Author)
		if err != nil {
			return nil, err
		}
		w.Past = append(w.Past, wPast{append([]byte(nil), key...), append([]byte(nil), p.Sum[:]...)})
	}
	for _, p := range v.Of {
		key, err := c.keyOf(p)
		if err != nil {
			return nil, err
		}
		w.Of = append(w.Of, append([]byte(nil), key...))
	}
	return w, nil
}

func (w *wVector) frame() (Frame, error) {
	var c ids
	v := Vector{More: w.More}
	var err error
	if v.Marks, err = toMarks(w.Marks); err != nil {
		return nil, err
	}
	for _, p := range w.Past {
		past := Past{}
		if past.Author, err = c.peerOf(p.Author); err != nil {
			return nil, err
		}
		if copy(past.Sum[:], p.Sum) != len(past.Sum) || len(p.Sum) != len(past.Sum) {
			return nil, fmt.Errorf("%w: a sum of %d bytes, not %d", ErrBadFrame, len(p.Sum), len(past.Sum))
		}
		v.Past = append(v.Past, past)
	}
	for _, key := range w.Of {
		peer, err := c.peerOf(key)
		if err != nil {
			return nil, err
		}
		v.Of = append(v.Of, peer)
	}
	return v, nil
}

type wHave struct {
	Marks []wMark `msgpack:"m"`
}

func (w *wHave) frame() (Frame, error) {
	marks, err := toMarks(w.Marks)
	return Have{marks}, err
}

func fromMarks(marks []Mark) ([]wMark, error) {
	if len(marks) == 0 {
		return nil, nil
	}
	var c ids
	out := make([]wMark, len(marks))
	for i, m := range marks {
		log, err := c.fromLog(m.Log)
		if err != nil {
			return nil, err
		}
		out[i] = wMark{Log: log, Seq: m.Seq}
	}
	return out, nil
}

func toMarks(marks []wMark) ([]Mark, error) {
	if len(marks) == 0 {
		return nil, nil
	}
	var c ids
	out := make([]Mark, len(marks))
	for i, w := range marks {
		m := Mark{Seq: w.Seq}
		var err error
		if m.Log, err = c.toLog(w.Log); err != nil {
			return nil, err
		}
		if err := checkSeq("mark", m.Seq, 0); err != nil {
			return nil, err
		}
		if len(w.Hash) != 0 && len(w.Hash) != len(m.Hash) {
			return nil, fmt.Errorf("%w: a mark's hash of %d bytes, not %d", ErrBadFrame, len(w.Hash), len(m.Hash))
		}
		copy(m.Hash[:], w.Hash)
		out[i] = m
	}
	return out, nil
}

type wNeed struct {
	Log  []byte `msgpack:"l"`
	From uint64 `msgpack:"f"`
	To   uint64 `msgpack:"t"`
}

func (w *wNeed) frame() (Frame, error) {
	var c ids
	log, err := c.toLog(w.Log)
	if err != nil {
		return nil, err
	}
	if err := checkSeq("from", w.From, 1); err != nil {
		return nil, err
	}
	if w.To != 0 {
		err = checkSeq("to", w.To, w.From)
	}
	return Need{log, w.From, w.To}, err
}

type wAddrs struct {
	Peer  []byte   `msgpack:"p"`
	Addrs []string `msgpack:"a"`
	At    int64    `msgpack:"t"`
	Sig   []byte   `msgpack:"s"`
}

func (w *wAddrs) frame() (Frame, error) {
	var c ids
	peer, err := c.peerOf(w.Peer)
	if err != nil {
		return nil, err
	}
	a := Addrs{peer, w.Addrs, w.At, w.Sig}
	return a, a.check()
}

type wBase struct {
	Digest []byte `msgpack:"d"`
	Bytes  uint64 `msgpack:"n"`
}

func (w *wBase) frame() (Frame, error) {
	var b Base
	if copy(b.Digest[:], w.Digest) != len(b.Digest) || len(w.Digest) != len(b.Digest) {
		return nil, fmt.Errorf("%w: a digest of %d bytes, not %d", ErrBadFrame, len(w.Digest), len(b.Digest))
	}
	if b.Bytes = w.Bytes; b.Bytes == 0 || b.Bytes > BaseBytesMax {
		return nil, fmt.Errorf("%w: a snapshot of %d bytes, at most %d", ErrBadFrame, b.Bytes, BaseBytesMax)
	}
	return b, nil
}

type wPing struct {
	ID   uint64 `msgpack:"i"`
	Wall int64  `msgpack:"w"`
}

func (w *wPing) frame() (Frame, error) { return Ping(*w), nil }

type wPong struct {
	ID   uint64 `msgpack:"i"`
	Wall int64  `msgpack:"w"`
}

func (w *wPong) frame() (Frame, error) { return Pong(*w), nil }

type wBye struct {
	Reason string `msgpack:"r"`
	Code   string `msgpack:"c"`
}

func (w *wBye) frame() (Frame, error) {
	return Bye(*w), checkTexts(field{"reason", w.Reason, protocol.ShortTextBytesMax}, field{"code", w.Code, 64})
}
