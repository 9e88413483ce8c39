package sim

import (
	"fmt"
	"testing"
)

// TestTheModelDiskKeepsTheContract, which the journal's own tests hold the real store to.
func TestTheModelDiskKeepsTheContract(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		d := NewDisk(ContractSigner)
		survives := false
		Contract(t, seed, Rig{
			Store: d,
			Power: func(n int) { d.Fails, survives = n > 0, n%2 == 0 },
			Full:  func(on bool) { d.Full = on },
			Reopen: func() Store {
				d.Crash(survives)
				return d
			},
		})
	}
}

func TestACopyOfADiskGoesItsOwnWay(t *testing.T) {
	w := New(PlanOf(3))
	w.Run()
	d := w.nodes[0].disk
	before, _ := d.Digest()
	c := d.Copy()
	if same, _ := c.Digest(); same != before || fmt.Sprint(answers(c)) != fmt.Sprint(answers(d)) {
		t.Fatal("a copy answers otherwise")
	}
	c.putValue("key/x", []byte("y"))
	c.logs[c.order.at(0).Record.Log] = nil
	if after, _ := d.Digest(); after != before || d.values["key/x"] != nil {
		t.Error("a change of the copy shows in the disk")
	}
}
