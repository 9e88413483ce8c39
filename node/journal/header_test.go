package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// hurtStart overwrites the first n bytes of the database in dir.
func hurtStart(t *testing.T, dir string, n int) (was []byte) {
	t.Helper()
	path := filepath.Join(dir, storeName)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, bytes.Repeat([]byte{0xa5}, n))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestADamagedHeaderCostsNoRecord: the other pages are read, the damaged file stays as it was, and no copy is left.
func TestADamagedHeaderCostsNoRecord(t *testing.T) {
	for _, n := range []int{1, 24, 64, headerBytes} {
		dir := tempDir(t)
		a, all := filled(t, dir, 45)
		raw := hurtStart(t, dir, n)
		faults, err := Examine(t.Context(), dir)
		if err != nil || len(faults) == 0 {
			t.Fatalf("%d bytes: found %v, %v", n, faults, err)
		}
		if err := NoteDamage(dir, faults); err != nil {
			t.Fatal(err)
		}
		j, _ := openMended(t, dir)
		checkHolds(t, j, all)
		checkSteps(t, j, a.log, 45)
		j.Close()
		if kept, err := os.ReadFile(asideName(filepath.Join(dir, storeName), 1)); err != nil || !bytes.Equal(kept, raw) {
			t.Errorf("%d bytes: the damaged file was changed: %v", n, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+headedEnding+"*")); len(left) > 0 {
			t.Errorf("%d bytes: left behind: %v", n, left)
		}
		if l, is := LossIn(dir); is {
			t.Errorf("%d bytes: nothing is lost, and said: %s", n, l)
		}
		if again, err := Examine(t.Context(), dir); err != nil || len(again) > 0 {
			t.Errorf("%d bytes: mended, and still: %v, %v", n, again, err)
		}
	}
}

// TestAStoreThatLostEverythingSaysSo until somebody accepts it.
func TestAStoreThatLostEverythingSaysSo(t *testing.T) {
	dir := tempDir(t)
	filled(t, dir, 45)
	hurtStart(t, dir, pageBytes)
	j := open(t, dir, Options{})
	if r := j.Recovery(); r.Salvaged != 0 || len(r.SetAside) == 0 {
		t.Fatalf("recovery: %+v", r)
	}
	commit(t, j, step(newAuthor(1, 1), 1))
	j.Close()
	l, is := LossIn(dir)
	if !is || l.Bad != 1 || l.Pages < 10 || len(l.Kept) != 1 || l.At == 0 {
		t.Fatalf("the loss: %+v, %v", l, is)
	}
	if faults, err := Examine(t.Context(), dir); err != nil || len(faults) != 1 || faults[0] != (Fault{FaultLost, l.String()}) {
		t.Errorf("found %v, %v", faults, err)
	}
	if err := AcceptLoss(dir); err != nil {
		t.Fatal(err)
	}
	if faults, err := Examine(t.Context(), dir); err != nil || len(faults) != 0 {
		t.Errorf("accepted, and found %v, %v", faults, err)
	}
}

// TestAMissingRecordIsNoDamage: it has its place, and no second rebuilding would bring it.
func TestAMissingRecordIsNoDamage(t *testing.T) {
	dir := tempDir(t)
	_, _ = filled(t, dir, 30)
	overwrite(t, filepath.Join(dir, storeName), []byte("message number 12"), func(b []byte) { b[0] ^= 1 })
	j, _ := openMended(t, dir)
	j.Close()
	faults, err := Examine(t.Context(), dir)
	if err != nil || len(faults) != 1 || faults[0].Code != FaultMissing {
		t.Fatalf("found %v, %v", faults, err)
	}
	if err := NoteDamage(dir, faults); err != nil || there(filepath.Join(dir, "damaged.note")) {
		t.Errorf("a missing record is noted as damage: %v", err)
	}
}
