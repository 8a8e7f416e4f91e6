package media

import (
	"bytes"
	"errors"
	"io"

	"github.com/jfreymuth/oggvorbis"
)

// Flags of an Ogg page header.
const (
	oggFirstPage = 2
	oggLastPage  = 4
)

func decodeVorbis(data []byte, lim AudioLimits) (*Audio, error) {
	// The identification header is the first page's only packet.
	if len(data) < 35 || string(data[28:35]) != "\x01vorbis" {
		if len(data) >= 36 && string(data[28:36]) == "OpusHead" {
			return nil, &notOursError{"ogg opus"}
		}
		return nil, &notOursError{"ogg"}
	}
	if err := checkOgg(data); err != nil {
		return nil, err
	}
	// Without Seek the library does not read the file twice.
	r, err := oggvorbis.NewReader(struct{ io.Reader }{bytes.NewReader(data)})
	if err != nil {
		return nil, err
	}
	m, err := newMixdown(r.SampleRate(), r.Channels(), lim)
	if err != nil {
		return nil, err
	}
	buf := make([]float32, 4096*m.channels)
	for {
		n, err := r.Read(buf)
		for _, v := range buf[:n] {
			if err := m.add(float64(v)); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			return &m.Audio, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// checkOgg walks the pages. It finds files that end early, which the library
// does not report if a page is complete, and files of several streams, of which
// it would read the first.
func checkOgg(data []byte) error {
	flags := byte(0)
	for p, page := 0, 0; p < len(data); page++ {
		if len(data)-p < 27 {
			return cutShort(p)
		}
		if string(data[p:p+4]) != "OggS" {
			return &FormatError{Offset: int64(p), Err: errors.New("no page where the last one ends")}
		}
		flags = data[p+5]
		if flags&oggFirstPage != 0 && page > 0 {
			return &notOursError{"ogg with several streams"}
		}
		segments := int(data[p+26])
		if segments == 0 {
			return &FormatError{Offset: int64(p), Err: errors.New("page without segments")}
		}
		if len(data)-p < 27+segments {
			return cutShort(p)
		}
		n := 27 + segments
		for _, s := range data[p+27 : p+27+segments] {
			n += int(s)
		}
		if n > len(data)-p {
			return cutShort(p)
		}
		p += n
	}
	if flags&oggLastPage == 0 {
		return cutShort(len(data))
	}
	return nil
}
