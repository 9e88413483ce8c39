package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestARepairIsLookedAtLessAndLessOften: soon at first, seldom later, once at the end, and no more once it is through.
func TestARepairIsLookedAtLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		if err := lookUntil(t.Context(), 30*time.Second, func() (bool, error) { looks++; return false, nil }); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 30*time.Second || looks < 15 || looks > 25 {
			t.Errorf("%d looks in %s", looks, took)
		}
		looks = 0
		if err := lookUntil(t.Context(), 30*time.Second, func() (bool, error) { looks++; return looks == 3, nil }); err != nil || looks != 3 {
			t.Errorf("%d looks, %v", looks, err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := lookUntil(ctx, 30*time.Second, func() (bool, error) { cancel(gone); return false, nil }); !errors.Is(err, gone) {
			t.Errorf("with nobody waiting: %v", err)
		}
	})
}
