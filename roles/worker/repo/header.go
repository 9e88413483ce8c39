package repo

import (
	"bufio"
	"io"
	"strings"
)

// parseHeader reads a bundle's text part. It never reads past bundleHeaderMax and a little buffer, whatever comes.
func parseHeader(r io.Reader) (needs []string, heads map[string]string, err error) {
	in := bufio.NewReader(io.LimitReader(r, bundleHeaderMax))
	line, err := in.ReadString('\n')
	if err != nil || (line != "# v2 git bundle\n" && line != "# v3 git bundle\n") {
		return nil, nil, badBundle("its first line is not a bundle's")
	}
	heads = map[string]string{}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, nil, badBundle("its list of refs does not end")
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			if len(heads) == 0 {
				return nil, nil, badBundle("it holds no ref")
			}
			return needs, heads, nil
		case line[0] == '@':
		case line[0] == '-':
			id, _, _ := strings.Cut(line[1:], " ")
			if !isCommitID(id) {
				return nil, nil, badBundle("a prerequisite is no commit id")
			}
			needs = append(needs, id)
		default:
			id, name, ok := strings.Cut(line, " ")
			if !ok || !isCommitID(id) || !goodRef(name) {
				return nil, nil, badBundle("a line of its refs is malformed")
			}
			heads[id] = name
		}
	}
}
