package repo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// headerBytesMax bounds the text before the pack: our own bundles have one ref and one prerequisite.
const headerBytesMax = 1 << 20

// header is the text part of a bundle.
type header struct {
	needs []string        // commits that it builds on
	heads map[string]bool // commits that its refs name
	bytes int64           // its length; the pack follows
}

func readHeader(path string) (header, error) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer f.Close()
	return parseHeader(f)
}

func badBundle(why string) error { return fmt.Errorf("not a git bundle that can be read: %s", why) }

// parseHeader reads git's bundle format: a signature line, capabilities (@), prerequisites (-id comment), refs (id name),
// an empty line. It never reads past headerBytesMax, whatever comes. The names of refs are not used.
func parseHeader(r io.Reader) (header, error) {
	in := bufio.NewReader(io.LimitReader(r, headerBytesMax))
	h := header{heads: map[string]bool{}}
	line, err := in.ReadString('\n')
	if err != nil || (line != "# v2 git bundle\n" && line != "# v3 git bundle\n") {
		return header{}, badBundle("its first line is not a bundle's")
	}
	for {
		h.bytes += int64(len(line))
		if line, err = in.ReadString('\n'); err != nil {
			return header{}, badBundle("its list of refs does not end")
		}
		switch {
		case line == "\n":
			h.bytes++
			if len(h.heads) == 0 {
				return header{}, badBundle("it holds no ref")
			}
			return h, nil
		case line[0] == '@':
		case line[0] == '-':
			id, _, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
			if !isCommitID(id) {
				return header{}, badBundle("a prerequisite is no commit id")
			}
			h.needs = append(h.needs, id)
		default:
			id, _, ok := strings.Cut(line, " ")
			if !ok || !isCommitID(id) {
				return header{}, badBundle("a line of its refs is malformed")
			}
			h.heads[id] = true
		}
	}
}
