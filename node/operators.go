package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/aster-mesh/aster/board/web"
)

// operatorsFile is a file of the board: accounts and ended sessions, access lists, or who is told by web push.
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

// openWeb makes the board's server. The port is open, and nothing is served yet.
func (n *Node) openWeb(exposed bool) error {
	key, err := keyFile(n.home.path("session.key"), true)
	if err != nil {
		return err
	}
	if n.web, err = web.New(web.Config{
		Backend: n, Token: n.token, SessionKey: key.Seed(), Keeper: operatorsFile(n.home.path("operators.json")),
		Access: operatorsFile(n.home.path("access.json")), Pushes: operatorsFile(n.home.path("push.json")),
		Exposed: exposed, OnAccess: n.accessChanged, Log: n.log,
	}); err != nil {
		return fmt.Errorf("%w. Put a backup of operators.json back, or delete it: then there are no accounts", err)
	}
	n.openAccess()
	return nil
}
