//go:build !(linux || darwin || freebsd)

package machine

// FreeSpace does not know.
func FreeSpace(string) (bytes int64, ok bool) { return 0, false }
