//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/aster-mesh/aster/node"
)

func checkRights(home string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return refused("home %s belongs to user %d, not to you (%d). Use your own: aster --home DIR", tilde(home), st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		if !node.IsHome(home) {
			return refused("%s is not the home of a node, and holds other things. Use a folder of its own: aster --home DIR", tilde(home))
		}
		return refused("home %s can be read by others (mode %04o). Mend it: chmod 700 %s", tilde(home), info.Mode().Perm(), tilde(home))
	}
	return nil
}
