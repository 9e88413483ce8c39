package bridge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// ErrForeign says that a path of the bridge is not a plain file or folder of this user. It is wrapped with the path.
var ErrForeign = errors.New("not a plain file of this user")

// FolderOf is the folder of an agent under dir. Ids that could mean something to a file system are escaped, so that
// two ids never share a folder and none leaves dir.
func FolderOf(dir string, agent protocol.AgentID) string {
	return filepath.Join(dir, folderName(agent))
}

// folderBytesMax leaves room under the 255 bytes that common file systems take.
const folderBytesMax = 200

func folderName(agent protocol.AgentID) string {
	var b strings.Builder
	for i, c := range []byte(agent) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 && i < len(agent)-1
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if stem, _, _ := strings.Cut(strings.ToLower(name), "."); reserved[stem] {
		name = fmt.Sprintf("%%%02x", name[0]) + name[1:]
	}
	if len(name) > folderBytesMax {
		name = name[:folderBytesMax-33] + "~" + hash(string(agent))
	}
	return name
}

// reserved are names that Windows keeps for devices, with any extension.
var reserved = func() map[string]bool {
	out := map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}
	for _, n := range "123456789" {
		out["com"+string(n)], out["lpt"+string(n)] = true, true
	}
	return out
}()

// makeFolder makes an agent's folder, or checks the one that is there.
func makeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w: it is %s", path, ErrForeign, what(info.Mode()))
	}
	if !ours(info) {
		return fmt.Errorf("%s: %w: another user owns it", path, ErrForeign)
	}
	return nil
}

// openPlain opens a regular file of this user. It never follows a link nor waits on a pipe, and looks again at what it
// opened, since the path may have changed in between.
func openPlain(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil {
		if err := checkPlain(path, info); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) || flag&os.O_CREATE == 0 {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkPlain(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkPlain(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: it is %s", path, ErrForeign, what(info.Mode()))
	}
	if !ours(info) {
		return fmt.Errorf("%s: %w: another user owns it", path, ErrForeign)
	}
	return nil
}

func what(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsRegular():
		return "a file"
	}
	return "neither file nor folder"
}
