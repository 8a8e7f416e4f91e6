//go:build linux || darwin || freebsd

package machine

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes a user may still write to the disk of a folder. ok is
// false where the system does not say.
func FreeSpace(dir string) (bytes int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
