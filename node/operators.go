package node

import (
	"errors"
	"io/fs"
	"os"
)

// operatorsFile is a file of the board: accounts and ended sessions, or access lists.
type operatorsFile string

// Load implements web.Keeper.
func (f operatorsFile) Load() ([]byte, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// Save implements web.Keeper.
func (f operatorsFile) Save(raw []byte) error { return writeBytes(string(f), raw) }
