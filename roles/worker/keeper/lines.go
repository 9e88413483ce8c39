package keeper

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

// tailLines is how many lines a report shows; the rest is in the attachment.
const tailLines = 10

// lastLines makes the end of an output readable: valid text, no control characters, at most tailLines lines and
// protocol.ShortTextBytesMax bytes.
func lastLines(b []byte) string {
	if len(b) > 4*protocol.ShortTextBytesMax {
		b = b[len(b)-4*protocol.ShortTextBytesMax:]
	}
	text := strings.TrimRight(clean(string(b)), " \n")
	for len(text) > protocol.ShortTextBytesMax {
		_, after, ok := strings.Cut(text, "\n")
		if !ok {
			text = strings.ToValidUTF8(text[len(text)-protocol.ShortTextBytesMax:], "")
			break
		}
		text = after
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// lastLine is the last line that says something, cut for a summary.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return cut(text[strings.LastIndexByte(text, '\n')+1:], 200)
}

// clean drops what terminals would obey: escape sequences and control characters other than tab and line end.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "")
	var out strings.Builder
	escape := 0 // 1: after ESC, 2: inside a CSI sequence
	for _, r := range s {
		switch {
		case r == 0x1b:
			escape = 1
		case escape == 1:
			escape = 0
			if r == '[' {
				escape = 2
			}
		case escape == 2:
			if r >= 0x40 && r <= 0x7e {
				escape = 0
			}
		case r == '\n' || r == '\t' || (!unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)):
			out.WriteRune(r)
		}
	}
	return out.String()
}

func cut(s string, runes int) string {
	r := []rune(s)
	if len(r) <= runes {
		return s
	}
	return string(r[:runes-1]) + "…"
}

// firstLine is the first line of the task that says something.
func firstLine(dir string) string {
	f, err := os.Open(filepath.Join(dir, FileText))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 4<<10)) // a subject needs no more; an unreadable one is no subject
	text := strings.TrimSpace(clean(string(b)))
	line, _, _ := strings.Cut(text, "\n")
	return line
}
