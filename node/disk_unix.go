//go:build unix

package node

import "syscall"

// diskLeft is what an ordinary user may still write on the disk that holds dir.
func diskLeft(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
