//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

func checkRights(home string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return refused("home %s belongs to user %d, not to you (%d). Use your own: aster --home DIR", tilde(home), st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return refused("home %s can be read by others (mode %04o). Mend it: chmod 700 %s", tilde(home), info.Mode().Perm(), tilde(home))
	}
	return nil
}
