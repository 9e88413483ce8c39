package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// disk is a file beside the homes, appended to and synced.
type disk struct {
	f    *os.File
	body []byte
}

func openDisk(dir string) (*disk, error) {
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return nil, fmt.Errorf("measure the disk: %w", err)
	}
	return &disk{f: f, body: make([]byte, bodyBytes)}, nil
}

// sync appends n bodies and makes them durable.
func (d *disk) sync(n int) (time.Duration, error) {
	began := time.Now()
	for range n {
		if _, err := d.f.Write(d.body); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
	}
	if err := datasync(d.f); err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	return time.Since(began), nil
}

func (d *disk) once() (time.Duration, error) { return d.sync(1) }

func (d *disk) close() error { return errors.Join(d.f.Close(), os.Remove(d.f.Name())) }
