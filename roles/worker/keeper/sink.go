package keeper

import (
	"os"
	"path/filepath"
	"sync"
)

// sinkTailBytes is what is remembered of the end, for progress and summaries.
const sinkTailBytes = 8 << 10

// sink takes what the commands print: a bounded file, a bounded tail, counts. Printing without end costs neither memory
// nor disk beyond the bounds.
type sink struct {
	file *os.File
	max  int64

	mu    sync.Mutex
	bytes int64  // printed, kept or not
	tail  []byte // at most 2 × sinkTailBytes
	usage usage
	lost  error // first reason why the file did not take something
}

func openSink(dir string, bytesMax int64) (*sink, error) {
	f, err := os.OpenFile(filepath.Join(dir, FileOutput), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &sink{file: f, max: bytesMax}, nil
}

// take keeps what fits. It never fails: a full disk must not stop a run that prints.
func (s *sink) take(p []byte) {
	s.mu.Lock()
	room := s.max - s.bytes
	s.bytes += int64(len(p))
	if room <= 0 {
		s.mu.Unlock()
		return // it is being stopped; what it still prints is only counted
	}
	p = p[:min(int64(len(p)), room)]
	s.usage.add(p)
	s.tail = append(s.tail, p...)
	if over := len(s.tail) - 2*sinkTailBytes; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over+sinkTailBytes:]...)
	}
	lost := s.lost != nil
	s.mu.Unlock()
	if lost {
		return
	}
	if _, err := s.file.Write(p); err != nil { // only the one reader writes, so the lock need not be held
		s.mu.Lock()
		s.lost = err
		s.mu.Unlock()
	}
}

// mark forgets the tail: what follows belongs to another command.
func (s *sink) mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.end()
	s.tail = s.tail[:0]
}

type counts struct {
	bytes, tokens int64
	tail          string
	over          bool
	lost          error
}

func (s *sink) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counts{s.bytes, s.usage.tokens(), lastLines(s.tail), s.bytes > s.max, s.lost}
}

// quick is counts without the text, for the loop that looks often.
func (s *sink) quick() (tokens int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage.tokens(), s.bytes > s.max
}
