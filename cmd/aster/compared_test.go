package main

import (
	"testing"

	"github.com/aster-mesh/aster/protocol/api"
)

func TestWhatStatusSaysOfBoardsThatWereCompared(t *testing.T) {
	for _, c := range []struct {
		in   api.Compared
		want string
	}{
		{api.Compared{Digest: "ab", Records: 41210, Alike: []string{"a", "b", "c"}}, "3 of 3 nodes agree on 41,210 records, 5 min ago"},
		{api.Compared{Digest: "ab", Records: 4, Alike: []string{"a", "b"}, Open: []string{"c"}}, "2 of 3 nodes agree on 4 records, 5 min ago; has not answered: c"},
		{api.Compared{Digest: "ab", Records: 4, Alike: []string{"a", "b"}, Differ: []string{"c\x1b[1m"}}, "2 of 3 nodes agree on 4 records, 5 min ago; differs: c [1m"},
		{api.Compared{Records: 4, Open: []string{"b"}}, "0 of 1 nodes have compared 4 records, 5 min ago; has not answered: b"},
		{api.Compared{Records: 4, Differ: []string{"a", "b"}, In: []string{"tasks"}}, "2 of 2 nodes have compared 4 records, 5 min ago; differs: a, b (in tasks)"},
		{api.Compared{Records: 4, Other: []string{"a", "b"}}, "2 of 2 nodes have compared 4 records, 5 min ago; runs another version: a, b"},
	} {
		c.in.At = 1_000_000
		if got := comparedText(api.Status{Now: 1_300_000, Compared: &c.in}); got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
}
