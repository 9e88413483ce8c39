package node

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func warned(t *testing.T, n *Node) string {
	t.Helper()
	st, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(st.Warnings, "\n")
}

// TestStatusSaysDamageNoLongerThanSomethingIsMissing.
func TestStatusSaysDamageNoLongerThanSomethingIsMissing(t *testing.T) {
	r := start(t, nil)
	r.stop()
	if err := os.WriteFile(filepath.Join(r.home, "journal", "damaged.note"), []byte("a test says so"), 0o600); err != nil {
		t.Fatal(err)
	}
	var n *Node
	start(t, func(c *Config) { c.Home, c.probe = r.home, func(x *Node) { n = x } })
	if n.store.Recovery().Reason == "" {
		t.Fatal("the store was not rebuilt")
	}
	if all := warned(t, n); strings.Contains(all, "damaged") {
		t.Errorf("nothing is missing, and status says: %s", all)
	}
}

// TestALossIsSaidUntilItIsAccepted by repair, doctor and status, over a start.
func TestALossIsSaidUntilItIsAccepted(t *testing.T) {
	r := start(t, nil)
	r.stop()
	path := filepath.Join(r.home, "journal", "journal.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, bytes.Repeat([]byte{0xa5}, 4096))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(h api.StoreHealth, err error) {
		t.Helper()
		if err != nil || len(h.Faults) != 1 || h.Faults[0].Code != journal.FaultLost || !strings.Contains(h.Faults[0].What, path+".damaged-1") {
			t.Errorf("%+v, %v", h, err)
		}
	}
	says(RepairHome(t.Context(), r.home))
	says(ExamineHome(t.Context(), r.home))
	var n *Node
	start(t, func(c *Config) { c.Home, c.probe = r.home, func(x *Node) { n = x } })
	says(n.StoreHealth(t.Context()))
	if all := warned(t, n); !strings.Contains(all, "what was only here is lost") {
		t.Errorf("status says: %s", all)
	}
	if err := AcceptLoss(r.home); err != nil {
		t.Fatal(err)
	}
	if all := warned(t, n); strings.Contains(all, "lost") {
		t.Errorf("accepted, and status says: %s", all)
	}
}

// TestAnExportOfADamagedHomeNamesDoctor, once.
func TestAnExportOfADamagedHomeNamesDoctor(t *testing.T) {
	r := start(t, nil)
	r.stop()
	path := filepath.Join(r.home, "journal", "journal.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 2*4096 + 3000; at < len(raw) && refused == 0; at += 4096 {
		bad := bytes.Clone(raw)
		bad[at] ^= 0xff
		if err := errors.Join(os.WriteFile(path, bad, 0o600), removeIfThere(filepath.Join(r.home, "journal", "damaged.note"))); err != nil {
			t.Fatal(err)
		}
		_, err := Export(t.Context(), r.home, nil, "test", io.Discard)
		var no *protocol.Refusal
		if err == nil { // opening has met it, and rebuilt the store
			continue
		}
		if refused++; !errors.As(err, &no) || !strings.Contains(err.Error(), "aster doctor") || strings.Contains(err.Error(), "disk I/O") {
			t.Errorf("export: %v", err)
		}
	}
	if refused == 0 {
		t.Error("no damage of a page was met by copying")
	}
}
