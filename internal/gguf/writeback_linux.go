package gguf

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback has the system begin to bring bytes [off, off+n) to the disk, so that
// little is left when the file is forced there, and the system never stops a writer
// for having too much to bring. It is a hint: Sync finds out whether it worked.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
