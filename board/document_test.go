package board

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// The newest state document holds in whatever order records come, what is none counts for nothing, and a checkpoint
// keeps it.
func TestTheNewestStateDocumentHolds(t *testing.T) {
	j := newJournal(t)
	first, second, out := j.open(0, protocol.ScopeInside), j.open(1, protocol.ScopeInside), j.open(3, protocol.ScopeOutside(j.peers[3]))
	for i := range j.peers {
		j.write(first, protocol.KindMember, j.admits(i))
	}
	older := j.write(first, protocol.KindState, protocol.StateBody{Text: `{"n":1}`})
	newer := j.write(second, protocol.KindState, protocol.StateBody{Text: "{\n\"n\": 2, \"t\": \"<&>\"}\n"})
	broken := j.write(second, protocol.KindState, protocol.StateBody{Text: `{"n":`})
	foreign := j.write(out, protocol.KindState, protocol.StateBody{Text: `{"n":9}`})
	admitted := first.records[:len(j.peers)]
	var digest string
	for _, rest := range [][]*protocol.Record{{older, newer, broken, foreign}, {foreign, newer, older, broken}, {newer, broken, foreign, older}} {
		s := New(j.id)
		for _, r := range append(append([]*protocol.Record{}, admitted...), rest...) {
			if err := s.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*State{s, again} {
			d := s.Document()
			if d == nil || d.Text != "{\n\"n\": 2, \"t\": \"<&>\"}\n" || d.By != j.peers[1] || d.Wall != newer.Wall {
				t.Fatalf("in force: %+v", d)
			}
			if digest == "" {
				digest = s.Digest()
			}
			if s.Digest() != digest {
				t.Error("two orders, two boards")
			}
		}
	}
}
