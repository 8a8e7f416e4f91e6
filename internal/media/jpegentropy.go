package media

import (
	"errors"
	"fmt"
)

// zigzag gives the natural position of each coefficient in file order.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// huffman is a decoding table.
type huffman struct {
	lookup [256]uint16 // by the next 8 bits: length<<8 | symbol, 0 if longer
	symbol []uint8     // in order of code
	// For codes of each length: the largest one (-1 if none), and what to add
	// to a code to get its index in symbol.
	last, shift [17]int
}

func (d *jpegDecoder) huffmanTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return fmt.Errorf("huffman table of %d bytes", len(b))
		}
		class, table := b[0]>>4, b[0]&15
		if class > 1 || table > 3 {
			return fmt.Errorf("huffman table %#x", b[0])
		}
		h, n, err := newHuffman(b[1:])
		if err != nil {
			return err
		}
		if class == 0 {
			d.dc[table] = h
		} else {
			d.ac[table] = h
		}
		b = b[1+n:]
	}
	return nil
}

// newHuffman builds a table from 16 counts and the symbols; n is how many bytes
// they take.
func newHuffman(b []byte) (h *huffman, n int, err error) {
	for _, c := range b[:16] {
		n += int(c)
	}
	if n == 0 || n > 256 || len(b) < 16+n {
		return nil, 0, fmt.Errorf("huffman table of %d symbols", n)
	}
	h = &huffman{symbol: b[16 : 16+n]}
	code, index := 0, 0
	for length := 1; length <= 16; length++ {
		count := int(b[length-1])
		h.shift[length] = index - code
		h.last[length] = code + count - 1
		if count == 0 {
			h.last[length] = -1
		}
		if code+count > 1<<length {
			return nil, 0, errors.New("huffman table with too many codes")
		}
		for range count {
			if length <= 8 {
				for fill := range 1 << (8 - length) {
					h.lookup[code<<(8-length)|fill] = uint16(length)<<8 | uint16(h.symbol[index])
				}
			}
			code++
			index++
		}
		code <<= 1
	}
	return h, 16 + n, nil
}

// entropyReader reads the bits of a scan. After an error it gives zeros.
type entropyReader struct {
	data []byte
	pos  int
	acc  uint64 // the lowest n bits are unread
	n    int
	err  error
}

var errScanEnds = errors.New("scan ends early")

// fill takes whole bytes up to a marker.
func (r *entropyReader) fill() {
	for r.n <= 48 && r.pos < len(r.data) {
		b := r.data[r.pos]
		if b == 0xff {
			if r.pos+1 >= len(r.data) || r.data[r.pos+1] != 0 {
				return
			}
			r.pos++ // a stuffed zero
		}
		r.pos++
		r.acc = r.acc<<8 | uint64(b)
		r.n += 8
	}
}

// bits reads k bits, at most 16.
func (r *entropyReader) bits(k int) int {
	if r.n < k {
		if r.fill(); r.n < k {
			r.fail(errScanEnds)
			return 0
		}
	}
	r.n -= k
	return int(r.acc>>r.n) & (1<<k - 1)
}

// signed reads a value of k bits in JPEG's form (EXTEND of T.81).
func (r *entropyReader) signed(k int) int {
	v := r.bits(k)
	if k > 0 && v < 1<<(k-1) {
		v -= 1<<k - 1
	}
	return v
}

// symbol reads one Huffman code.
func (r *entropyReader) symbol(h *huffman) int {
	if r.n < 16 {
		r.fill()
	}
	var next int // 8 bits, zeros behind the end
	if r.n >= 8 {
		next = int(r.acc>>(r.n-8)) & 255
	} else {
		next = int(r.acc<<(8-r.n)) & 255
	}
	if e := h.lookup[next]; e != 0 && int(e>>8) <= r.n {
		r.n -= int(e >> 8)
		return int(e & 255)
	}
	for length := 9; length <= min(16, r.n); length++ {
		code := int(r.acc>>(r.n-length)) & (1<<length - 1)
		if code <= h.last[length] {
			r.n -= length
			return int(h.symbol[code+h.shift[length]])
		}
	}
	if r.n < 16 {
		r.fail(errScanEnds)
	} else {
		r.fail(errors.New("no such huffman code"))
	}
	return 0
}

func (r *entropyReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	// Nothing after this counts, so stop reading.
	r.n, r.pos = 0, len(r.data)
}

// restartMarker drops the rest of a byte and takes the marker, the i-th of the
// scan.
func (r *entropyReader) restartMarker(i int) {
	r.n = 0
	marker, at := nextMarker(r.data, r.pos)
	if want := uint8(jpegRST0 + i%8); marker != want {
		r.fail(fmt.Errorf("marker %#x where restart marker %#x is due", marker, want))
		return
	}
	r.pos = at
}
