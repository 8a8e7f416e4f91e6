package gguf

import (
	"encoding/binary"
	"math"
)

// reader walks the header of a mapped file. The first error sticks: every read
// after it returns zero, so a caller checks err once per group of fields.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// left returns how many bytes follow.
func (r *reader) left() uint64 { return uint64(len(r.data) - r.pos) }

// take returns the next n bytes of the mapping, nil after an error.
func (r *reader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.left() {
		r.fail(formatErrorf(int64(r.pos), "%s needs %d bytes, the file has %d more", what, n, r.left()))
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) u8(what string) uint8 {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16(what string) uint16 {
	if b := r.take(2, what); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of things that take at least size bytes each, and refuses
// one that the rest of the file cannot hold.
func (r *reader) count(size uint64, what string) int {
	at := r.pos
	n := r.u64(what)
	if r.err == nil && n > r.left()/size {
		r.fail(formatErrorf(int64(at), "%s is %d, the file has %d more bytes", what, n, r.left()))
		return 0
	}
	return int(n)
}

// str reads a string of at most limit bytes.
func (r *reader) str(limit uint64, what string) string {
	at := r.pos
	n := r.u64(what)
	if r.err == nil && n > limit {
		r.fail(formatErrorf(int64(at), "%s of %d bytes, want at most %d", what, n, limit))
	}
	return string(r.take(n, what))
}

// anyLength is the limit of a string that only the file's size bounds.
const anyLength = math.MaxUint64

// strs reads n strings. They share one block of memory: a vocabulary has
// hundreds of thousands of them.
func (r *reader) strs(n int, what string) []string {
	start := r.pos
	for range n {
		r.take(r.u64(what), what)
	}
	if r.err != nil {
		return nil
	}
	block := string(r.data[start:r.pos])
	out := make([]string, n)
	for i := range out {
		size := int(binary.LittleEndian.Uint64([]byte(block[:8])))
		out[i], block = block[8:8+size], block[8+size:]
	}
	return out
}
