package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/jfreymuth/oggvorbis"
)

// Flags of an Ogg page header.
const (
	oggContinued = 1
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
	headers, err := scanOgg(data)
	if err != nil {
		return nil, err
	}
	m, err := checkVorbis(headers, lim)
	if err != nil {
		return nil, err
	}
	// Without Seek the library does not read the file twice.
	r, err := oggvorbis.NewReader(struct{ io.Reader }{bytes.NewReader(data)})
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

// scanOgg walks the pages and returns the first three packets, the Vorbis
// headers. It finds files that end early, which the library does not report if
// a page is complete, and files of several streams, of which it would read the
// first.
func scanOgg(data []byte) (headers [][]byte, err error) {
	var packet []byte
	flags := byte(0)
	for p, page := 0, 0; p < len(data); page++ {
		if len(data)-p < 27 {
			return nil, cutShort(p)
		}
		if string(data[p:p+4]) != "OggS" {
			return nil, &FormatError{Offset: int64(p), Err: errors.New("no page where the last one ends")}
		}
		flags = data[p+5]
		if flags&oggFirstPage != 0 && page > 0 {
			return nil, &notOursError{"ogg with several streams"}
		}
		n := int(data[p+26])
		if n == 0 {
			return nil, &FormatError{Offset: int64(p), Err: errors.New("page without segments")}
		}
		if len(data)-p < 27+n {
			return nil, cutShort(p)
		}
		if flags&oggContinued == 0 {
			packet = nil
		}
		body := p + 27 + n
		for _, size := range data[p+27 : body] {
			if int(size) > len(data)-body {
				return nil, cutShort(p)
			}
			if len(headers) < 3 {
				packet = append(packet, data[body:body+int(size)]...)
				if size < 255 {
					headers = append(headers, packet)
					packet = nil
				}
			}
			body += int(size)
		}
		p = body
	}
	if flags&oggLastPage == 0 || len(headers) < 3 {
		return nil, cutShort(len(data))
	}
	return headers, nil
}

// checkVorbis checks what the library would take on trust: it takes memory for
// any number of comments and any size of codebook, and never returns from a
// codebook without codes.
func checkVorbis(headers [][]byte, lim AudioLimits) (*mixdown, error) {
	id, comments, setup := headers[0], headers[1], headers[2]
	if len(id) < 30 || !bytes.HasPrefix(comments, []byte("\x03vorbis")) || !bytes.HasPrefix(setup, []byte("\x05vorbis")) {
		return nil, errors.New("vorbis headers are missing")
	}
	m, err := newMixdown(int(binary.LittleEndian.Uint32(id[12:])), int(id[11]), lim)
	if err != nil {
		return nil, err
	}
	if err := checkVorbisComments(comments[7:]); err != nil {
		return nil, err
	}
	return m, checkVorbisCodebooks(setup[7:])
}

// checkVorbisComments walks the comments, each a length and that many bytes.
func checkVorbisComments(b []byte) error {
	field := func() (uint32, error) { // a number
		if len(b) < 4 {
			return 0, errors.New("vorbis comments are cut short")
		}
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return n, nil
	}
	skip := func() error { // a string
		n, err := field()
		if err == nil && uint64(n) > uint64(len(b)) {
			err = errors.New("vorbis comments are cut short")
		}
		if err == nil {
			b = b[n:]
		}
		return err
	}
	if err := skip(); err != nil { // the encoder's name
		return err
	}
	n, err := field()
	for ; err == nil && n > 0; n-- {
		err = skip()
	}
	return err
}
