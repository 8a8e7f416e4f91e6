package media

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Codebooks of real encoders have at most some thousand entries of at most 8
// dimensions.
const (
	maxBookEntries = 1 << 16
	maxBookValues  = 1 << 20
)

// checkVorbisCodebooks reads the sizes of the codebooks at the start of a setup
// header (Vorbis I specification, section 3.2.1).
func checkVorbisCodebooks(b []byte) error {
	r := lsbReader{data: b}
	for book := range int(r.bits(8)) + 1 {
		if err := r.codebook(); err != nil {
			return fmt.Errorf("vorbis codebook %d: %w", book, err)
		}
	}
	return nil
}

// lsbReader reads bits as Vorbis packs them, the lowest first. Behind the end it
// gives zeros and sets short.
type lsbReader struct {
	data  []byte
	pos   int // in bits
	short bool
}

func (r *lsbReader) bits(n int) uint32 {
	var v uint32
	for i := range n {
		if r.pos>>3 >= len(r.data) {
			r.short = true
			return 0
		}
		v |= uint32(r.data[r.pos>>3]>>(r.pos&7)&1) << i
		r.pos++
	}
	return v
}

// skip passes n bits.
func (r *lsbReader) skip(n int) {
	if n > 8*len(r.data)-r.pos {
		r.short = true
		n = 8*len(r.data) - r.pos
	}
	r.pos += n
}

var errBookCut = errors.New("cut short")

// codebook passes one codebook.
func (r *lsbReader) codebook() error {
	if r.bits(24) != 0x564342 {
		return errors.New("not where it should start")
	}
	dimensions, entries := int(r.bits(16)), int(r.bits(24))
	// Without dimensions the library's loops over vectors would not advance.
	if dimensions == 0 || entries > maxBookEntries || entries*dimensions > maxBookValues {
		return fmt.Errorf("%d entries of %d dimensions", entries, dimensions)
	}
	var used int
	var err error
	if r.bits(1) == 0 {
		used = r.codeLengths(entries)
	} else {
		used, err = r.orderedLengths(entries)
	}
	if err != nil {
		return err
	}
	// The library cannot build a tree of one entry, and a tree without any
	// would hold it forever.
	if entries < 2 || used == 0 {
		return &notOursError{"ogg vorbis (codebook of one entry)"}
	}
	kind := r.bits(4)
	if kind > 2 {
		return fmt.Errorf("lookup type %d", kind)
	}
	if kind > 0 {
		r.skip(64) // least value and step
		width := int(r.bits(4)) + 1
		r.skip(1)
		values := entries * dimensions
		if kind == 1 {
			values = int(math.Floor(math.Pow(float64(entries), 1/float64(dimensions))))
		}
		r.skip(values * width)
	}
	if r.short {
		return errBookCut
	}
	return nil
}

// codeLengths passes one length for each entry and returns how many have one.
func (r *lsbReader) codeLengths(entries int) (used int) {
	sparse := r.bits(1) == 1
	for range entries {
		if sparse && r.bits(1) == 0 {
			continue
		}
		r.skip(5)
		used++
		if r.short {
			break
		}
	}
	return used
}

// orderedLengths passes the number of entries for each length, ascending.
func (r *lsbReader) orderedLengths(entries int) (used int, err error) {
	for length := int(r.bits(5)) + 1; used < entries; length++ {
		if length > 32 || r.short {
			return used, errors.New("entries without a code length")
		}
		used += int(r.bits(bits.Len(uint(entries - used))))
	}
	if used > entries {
		return used, errors.New("more code lengths than entries")
	}
	return used, nil
}
