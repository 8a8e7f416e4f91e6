package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// bitWriter packs bits as Vorbis does.
type bitWriter struct {
	data []byte
	n    int
}

func (w *bitWriter) put(v uint32, n int) *bitWriter {
	for i := range n {
		if w.n%8 == 0 {
			w.data = append(w.data, 0)
		}
		w.data[w.n/8] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
	return w
}

// book starts a setup header with one codebook.
func book(dimensions, entries uint32) *bitWriter {
	return new(bitWriter).put(0, 8).put(0x564342, 24).put(dimensions, 16).put(entries, 24)
}

func TestVorbisCodebooks(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup *bitWriter
		want  string // "" for none
	}{
		{"two codes", book(1, 2).put(0, 2).put(0, 5).put(0, 5).put(0, 4), ""},
		{"sparse", book(1, 3).put(2, 2).put(1, 1).put(0, 5).put(0, 1).put(1, 1).put(0, 5).put(0, 4), ""},
		{"ordered", book(1, 3).put(1, 1).put(0, 5).put(1, 2).put(2, 2).put(0, 4), ""},
		{"table of values", book(2, 4).put(0, 2).put(0, 20).put(1, 4).put(0, 32).put(0, 32).put(3, 4).put(0, 1).put(0, 8), ""},
		{"values are cut", book(2, 4).put(0, 2).put(0, 20).put(2, 4).put(0, 32).put(0, 32).put(3, 4).put(0, 1).put(0, 24), "cut short"},
		{"lengths are cut", book(1, 2).put(0, 2).put(0, 5), "cut short"},
		{"no pattern", new(bitWriter).put(0, 8).put(0, 64), "not where it should start"},
		{"too many entries", book(1, 1<<24-1), "16777215 entries"},
		{"too many values", book(65535, 65535), "65535 dimensions"},
		{"ordered without end", book(1, 2).put(1, 1).put(0, 500), "without a code length"},
		{"ordered with too many", book(1, 2).put(1, 1).put(0, 5).put(3, 2), "more code lengths"},
		{"lookup type 3", book(1, 2).put(0, 2).put(0, 10).put(3, 4), "lookup type 3"},
		{"no dimensions", book(0, 2).put(0, 2).put(0, 10).put(0, 4), "2 entries of 0 dimensions"},
		{"no entries", book(1, 0).put(0, 100), "one entry"},
		{"one entry", book(1, 1).put(0, 100), "one entry"},
		{"no codes", book(1, 4).put(2, 2).put(0, 100), "one entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkVorbisCodebooks(c.setup.data)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestVorbisComments(t *testing.T) {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint32(b, uint32(len(s))), s...) }
	good := text(text(le.AppendUint32(text(nil, "encoder"), 2), "A=b"), "C=d")
	if err := checkVorbisComments(good); err != nil {
		t.Error(err)
	}
	many := le.AppendUint32(text(nil, "encoder"), 0xffffffff)
	for name, b := range map[string][]byte{"none": nil, "cut": good[:len(good)-1], "many": many, "long": le.AppendUint32(nil, 0xffffffff)} {
		if err := checkVorbisComments(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestScanOgg(t *testing.T) {
	page := func(flags byte, segments ...byte) []byte {
		b := append([]byte("OggS\x00"), flags)
		b = append(b, make([]byte, 20)...)
		b = append(append(b, byte(len(segments))), segments...)
		for i, n := range segments {
			b = append(b, bytes.Repeat([]byte{byte('a' + i)}, int(n))...)
		}
		return b
	}
	join := func(pages ...[]byte) []byte { return bytes.Join(pages, nil) }
	// The second header continues on the next page.
	headers, err := scanOgg(join(page(oggFirstPage, 2), page(0, 255), page(oggContinued, 1, 3), page(oggLastPage, 9)))
	if err != nil {
		t.Fatal(err)
	}
	if len(headers) != 3 || len(headers[0]) != 2 || len(headers[1]) != 256 || string(headers[2]) != "bbb" {
		t.Errorf("headers %q", headers)
	}
	whole := join(page(oggFirstPage, 2), page(0, 1, 1), page(oggLastPage, 9))
	for name, data := range map[string][]byte{
		"last page missing":   join(page(oggFirstPage, 2), page(0, 1, 1)),
		"in a page":           whole[:len(whole)-1],
		"in a segment table":  whole[:27],
		"in a page header":    whole[:20],
		"headers missing":     page(oggFirstPage|oggLastPage, 2),
		"bytes between pages": join(page(oggFirstPage, 2), []byte("x"), page(oggLastPage, 1, 1, 1)),
		"page of nothing":     join(page(oggFirstPage, 2), page(oggLastPage)),
	} {
		var format *FormatError
		if _, err := scanOgg(data); !errors.As(err, &format) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	var foreign *notOursError
	if _, err := scanOgg(join(whole, page(oggFirstPage, 1))); !errors.As(err, &foreign) {
		t.Errorf("two streams: error %v", err)
	}
}

func FuzzVorbisHeaders(f *testing.F) {
	headers, err := scanOgg(readFile(f, "testdata/audio/stereo.ogg"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(headers[1][7:], headers[2][7:])
	f.Fuzz(func(t *testing.T, comments, setup []byte) {
		_ = checkVorbisComments(comments) // must return
		_ = checkVorbisCodebooks(setup)
	})
}
