package meshwire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// TestNoFlippedBitOfARangeIsTaken: whichever bit of a frame of records is another one on arrival, the frame is refused, or its
// records are not proven to be their author's, or they are the very records that were sent.
func TestNoFlippedBitOfARangeIsTaken(t *testing.T) {
	sent := FromRecords(rangeFor("ada", 41, 5, 40, 2))
	frame, err := Encode(sent)
	if err != nil {
		t.Fatal(err)
	}
	typ, body := frame[headBytes-1], frame[headBytes:]
	refused, unproven := 0, 0
	for bit := range 8 * len(body) {
		body[bit/8] ^= 1 << (bit % 8)
		got, err := Decode(typ, body)
		body[bit/8] ^= 1 << (bit % 8)
		if err != nil {
			if !errors.Is(err, ErrBadFrame) && !errors.Is(err, ErrFrameTooLarge) {
				t.Errorf("bit %d: %v", bit, err)
			}
			refused++
			continue
		}
		rs, ok := got.(Records)
		if !ok {
			t.Fatalf("bit %d makes a %T of it", bit, got)
		}
		if _, err := protocol.VerifyCommits(rs.ToRecords(), rs.Prev); err != nil {
			unproven++
			continue
		}
		for i := range rs.Records[:len(rs.Records)-1] {
			if len(rs.Records[i].Sig) == 0 { // a signature within the range may be missing: the last one proves what is before it
				rs.Records[i].Sig = sent.Records[i].Sig
			}
		}
		if diff := cmp.Diff(rs, sent); diff != "" {
			t.Errorf("bit %d is taken (-got +sent):\n%s", bit, diff)
		}
	}
	if refused == 0 || unproven == 0 {
		t.Errorf("%d refused, %d unproven: of both there are some", refused, unproven)
	}
}
