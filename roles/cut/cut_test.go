package cut

import (
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func peers(names string) (out []protocol.PeerID) {
	for _, r := range names {
		out = append(out, protocol.PeerID(r))
	}
	return out
}

// TestWhoDiffers: answers are written NODE:FOLD:DIGEST, a letter each.
func TestWhoDiffers(t *testing.T) {
	for _, c := range []struct {
		what, inside                       string
		answers                            []string
		digest, alike, differ, other, open string
	}{
		{"nobody has answered", "abc", nil, "", "", "", "", "abc"},
		{"one of three is no majority", "abc", []string{"a1x"}, "", "", "", "", "bc"},
		{"two of three are", "abc", []string{"a1x", "b1x"}, "x", "ab", "", "", "c"},
		{"all agree", "abc", []string{"a1x", "b1x", "c1x"}, "x", "abc", "", "", ""},
		{"one differs", "abc", []string{"a1x", "b1y", "c1x"}, "x", "ac", "b", "", ""},
		{"another version is not wrong", "abc", []string{"a1x", "b2y", "c1x"}, "x", "ac", "", "b", ""},
		{"nor is the older one", "abc", []string{"a2x", "b1y", "c2x"}, "x", "ac", "", "b", ""},
		{"half is no majority", "abcd", []string{"a1x", "b1x", "c1y"}, "", "", "", "", "d"},
		{"two halves differ", "abcd", []string{"a1x", "b1x", "c1y", "d1y"}, "", "", "abcd", "", ""},
		{"two nodes differ", "ab", []string{"a1x", "b1y"}, "", "", "ab", "", ""},
		{"two nodes of two versions say nothing", "ab", []string{"a1x", "b2y"}, "", "", "", "ab", ""},
		{"one that may still agree", "ab", []string{"a1x"}, "", "", "", "", "b"},
		{"whoever is no member is not asked", "ab", []string{"a1x", "b1x", "z1y", "y1y", "w1y"}, "x", "ab", "", "", ""},
		{"the first answer of a node counts", "ab", []string{"a1x", "a1y", "b1x"}, "x", "ab", "", "", ""},
		{"no majority can come about", "abcde", []string{"a1x", "b1y", "c1z", "d1w"}, "", "", "abcd", "", "e"},
		{"of mixed versions without a majority those of one differ", "abcd", []string{"a1x", "b1y", "c2z", "d2z"}, "", "", "ab", "cd", ""},
	} {
		var answers []Answer
		for _, a := range c.answers {
			answers = append(answers, Answer{protocol.PeerID(a[:1]), int(a[1] - '0'), a[2:]})
		}
		v := Judge(peers(c.inside), answers)
		got := []string{v.Digest}
		for _, list := range [][]protocol.PeerID{v.Alike, v.Differ, v.Other, v.Open} {
			text := ""
			for _, p := range list {
				text += string(p)
			}
			got = append(got, text)
		}
		if want := []string{c.digest, c.alike, c.differ, c.other, c.open}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.what, got, want)
		}
	}
}

// TestNobodyDiffersFromAMajorityThatAgrees: whatever the order and whoever is missing, who answered as the majority did is
// never said to differ, and each member is in one list at most.
func TestNobodyDiffersFromAMajorityThatAgrees(t *testing.T) {
	inside := peers("abcde")
	for pick := range 4 * 4 * 4 * 4 * 4 {
		var answers []Answer
		count := map[Answer]int{}
		for i, n := 0, pick; i < len(inside); i, n = i+1, n/4 {
			if n%4 > 0 {
				a := Answer{inside[i], 1 + n%4/3, string("-xyy"[n%4])}
				answers = append(answers, a)
				a.By = ""
				count[a]++
			}
		}
		v := Judge(inside, answers)
		slices.Reverse(answers)
		if again := Judge(inside, answers); again.Digest != v.Digest || !slices.Equal(again.Differ, v.Differ) || !slices.Equal(again.Other, v.Other) {
			t.Fatalf("%v: %v in another order %v", answers, v, again)
		}
		seen := map[protocol.PeerID]int{}
		for _, p := range slices.Concat(v.Alike, v.Differ, v.Other, v.Open) {
			if seen[p]++; seen[p] > 1 {
				t.Fatalf("%v: %s twice in %v", answers, p, v)
			}
		}
		for a, n := range count {
			if n > len(inside)/2 && (v.Digest != a.Digest || len(v.Alike) != n) {
				t.Fatalf("%v: %v", answers, v)
			}
		}
	}
}

func TestInWhatBoardsDiffer(t *testing.T) {
	for _, c := range []struct {
		parts []map[string]string
		want  []string
	}{
		{nil, nil},
		{[]map[string]string{{"a": "1", "b": "2"}}, nil},
		{[]map[string]string{{"a": "1", "b": "2"}, {"b": "2", "a": "1"}}, nil},
		{[]map[string]string{{"a": "1", "b": "2"}, {"b": "3", "a": "1"}}, []string{"b"}},
		{[]map[string]string{{"b": "2"}, {"b": "2", "a": "1"}, {"b": "2", "c": "1"}}, []string{"a", "c"}},
	} {
		if got := Differences(c.parts); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.parts, got, c.want)
		}
	}
}

func TestWhoProposes(t *testing.T) {
	for _, c := range []struct{ main, up, want string }{
		{"b", "abc", "b"}, {"b", "ac", "a"}, {"", "bc", "b"}, {"z", "bc", "b"}, {"b", "", ""},
	} {
		up := func(p protocol.PeerID) bool { return slices.Contains(peers(c.up), p) }
		if got := Proposer(protocol.PeerID(c.main), peers("cab"), up); got != protocol.PeerID(c.want) {
			t.Errorf("main %q, up %q: %q, want %q", c.main, c.up, got, c.want)
		}
	}
}

func TestWhenComparisonsAreDue(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		ago, every time.Duration
		want       bool
	}{
		{time.Hour, 0, false}, {time.Hour, 2 * time.Hour, false}, {2 * time.Hour, 2 * time.Hour, true},
		{-time.Hour, 2 * time.Hour, false}, {-10_000 * time.Hour, 2 * time.Hour, true},
	} {
		if got := Due(now, now.Add(-c.ago), c.every); got != c.want {
			t.Errorf("asked %v ago, every %v: %v", c.ago, c.every, got)
		}
	}
}
