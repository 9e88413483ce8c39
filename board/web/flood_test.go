package web

import "testing"

// TestAFloodOfLoginsWaitsForItself: one address has a few places, and others find theirs.
func TestAFloodOfLoginsWaitsForItself(t *testing.T) {
	var f failures
	var leave []func()
	for range loginsEach {
		l, ok := f.enter("192.0.2.1")
		if !ok {
			t.Fatal("no place for the first")
		}
		leave = append(leave, l)
	}
	if _, ok := f.enter("192.0.2.1"); ok {
		t.Error("one address took more than its places")
	}
	if l, ok := f.enter("192.0.2.2"); !ok {
		t.Error("another address found no place")
	} else {
		l()
	}
	for _, l := range leave {
		l()
	}
	if f.all != 0 || len(f.waiting) != 0 {
		t.Errorf("%d and %d are left", f.all, len(f.waiting))
	}
	if _, ok := f.enter("192.0.2.1"); !ok {
		t.Error("no place after all have left")
	}
}
