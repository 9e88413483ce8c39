package web

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine of ours outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	client.CloseIdleConnections()
	if chrome.end != nil {
		chrome.end()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
