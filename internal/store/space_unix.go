//go:build linux || darwin || freebsd

package store

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that a user may still write to the disk of a folder.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
