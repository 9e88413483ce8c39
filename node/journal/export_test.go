package journal

import "testing"

// Faulty is the seeded file layer under a store, for the contract that the model of it keeps too.
type Faulty struct {
	d    *disk
	j    *Journal
	sign Signer
}

// OpenFaulty opens a store in dir over a disk of its own.
func OpenFaulty(t testing.TB, dir string, sign Signer) *Faulty {
	f := &Faulty{sign: sign}
	f.Reopen(t, dir)
	return f
}

// Reopen ends the store, and opens what its disk kept on one without faults.
func (f *Faulty) Reopen(t testing.TB, dir string) *Journal {
	if f.j != nil {
		f.j.Close()
	}
	f.d = &disk{}
	f.j = open(t, dir, Options{VFS: newDisk(t, f.d), Sign: f.sign})
	return f.j
}

// Store is the open store.
func (f *Faulty) Store() *Journal { return f.j }

// Power has the power go at the nth step from now; of what is not synced then nothing, half or all survives.
func (f *Faulty) Power(n, keep int) {
	f.d.mu.Lock()
	f.d.failAt, f.d.keep = f.d.steps+n, keep
	f.d.mu.Unlock()
}

// Full says whether writes find room.
func (f *Faulty) Full(on bool) {
	if !on {
		f.d.heal()
		return
	}
	f.d.mu.Lock()
	f.d.fullAt = f.d.steps + 1
	f.d.mu.Unlock()
}
