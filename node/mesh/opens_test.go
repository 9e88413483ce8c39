package mesh

import (
	"testing"
	"testing/synctest"
	"time"
)

// A member that opens streams without end has so many a second, and costs another member none.
func TestStreamsOfOneMemberArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o opens
		began := time.Now()
		for range opensBurst + 5*opensPerSec {
			if !o.wait(t.Context(), "greedy") {
				t.Fatal("a stream was refused")
			}
		}
		if took := time.Since(began); took < 4900*time.Millisecond || took > 5100*time.Millisecond {
			t.Errorf("%d streams in %s", opensBurst+5*opensPerSec, took)
		}
		began = time.Now()
		if !o.wait(t.Context(), "other") || time.Since(began) != 0 {
			t.Errorf("another member waited %s", time.Since(began))
		}
	})
}
