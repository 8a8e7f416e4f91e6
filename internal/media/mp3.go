package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// mp3FrameSamples is the length of an MPEG-1 layer III frame.
const mp3FrameSamples = 1152

// mp3DecoderDelay is by how much a decoder is behind, in samples: 528 for the
// filter banks and one by convention. Encoders count on it.
const mp3DecoderDelay = 529

// mp3Frame is what a frame header says.
type mp3Frame struct {
	size int // bytes
	rate int
	mono bool
}

var errNoFrame = errors.New("no frame header")

// parseMP3Frame reads an MPEG-1 layer III frame header. Other versions and
// layers, and free bit rates, give a notOursError: the library garbles some of
// them without an error.
func parseMP3Frame(h []byte) (mp3Frame, error) {
	if len(h) < 4 || h[0] != 0xff || h[1]&0xe0 != 0xe0 {
		return mp3Frame{}, errNoFrame
	}
	version, layer := h[1]>>3&3, h[1]>>1&3
	bitrate, rate := h[2]>>4, h[2]>>2&3
	if version == 1 || layer == 0 || bitrate == 15 || rate == 3 {
		return mp3Frame{}, errNoFrame
	}
	switch {
	case version == 0:
		return mp3Frame{}, &notOursError{"mp3 (MPEG-2.5)"}
	case version == 2:
		return mp3Frame{}, &notOursError{"mp3 (MPEG-2)"}
	case layer != 1:
		return mp3Frame{}, &notOursError{fmt.Sprintf("mpeg audio layer %d", 4-layer)}
	case bitrate == 0:
		return mp3Frame{}, &notOursError{"mp3 (free bit rate)"}
	}
	kbps := [15]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}[bitrate]
	f := mp3Frame{rate: [3]int{44100, 48000, 32000}[rate], mono: h[3]>>6 == 3}
	f.size = 144000*kbps/f.rate + int(h[2]>>1&1)
	return f, nil
}

func decodeMP3(data []byte, lim AudioLimits) (*Audio, error) {
	first, err := parseMP3Frame(data)
	if errors.Is(err, errNoFrame) {
		return nil, &notOursError{} // other formats begin with 0xff too, AAC for one
	}
	if err != nil {
		return nil, err
	}
	m, err := newMixdown(first.rate, 2, lim) // the library always gives two channels
	if err != nil {
		return nil, err
	}
	tag := readMP3Tag(data[:min(first.size, len(data))], first.mono)
	start := 0
	if tag.present {
		start = first.size // the tag's frame holds no sound
	}
	end, frames, err := mp3Extent(data, start)
	if err != nil {
		return nil, err
	}
	if tag.frames > 0 && frames < tag.frames {
		return nil, fmt.Errorf("%d of %d frames: file is cut short", frames, tag.frames)
	}
	skip, keep := 0, frames*mp3FrameSamples
	if tag.gapless {
		skip = tag.delay + mp3DecoderDelay
		keep = max(keep-tag.delay-tag.padding, 0)
	}
	// Without Seek the library does not read the file twice.
	d, err := mp3.NewDecoder(struct{ io.Reader }{bytes.NewReader(data[start:end])})
	if err != nil {
		return nil, err
	}
	return &m.Audio, m.addMP3(d, skip, keep)
}

// addMP3 takes keep frames of stereo samples after the first skip.
func (m *mixdown) addMP3(d *mp3.Decoder, skip, keep int) error {
	buf := make([]byte, 4*mp3FrameSamples)
	for keep > 0 {
		n, err := io.ReadFull(d, buf)
		for b := buf[:n-n%4]; len(b) > 0 && keep > 0; b = b[4:] {
			if skip > 0 {
				skip--
				continue
			}
			keep--
			for c := 0; c < 4; c += 2 {
				v := int16(binary.LittleEndian.Uint16(b[c:]))
				if err := m.add(float64(v) / 32768); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mp3Extent walks the frames from start and returns where they end and how many
// there are. Tags may follow them.
func mp3Extent(data []byte, start int) (end, frames int, err error) {
	p := start
	for p < len(data) {
		rest := data[p:]
		if bytes.HasPrefix(rest, []byte("TAG")) || bytes.HasPrefix(rest, []byte("APETAGEX")) ||
			bytes.HasPrefix(rest, []byte("LYRICSBEGIN")) || len(bytes.Trim(rest, "\x00")) == 0 {
			break
		}
		if len(rest) < 4 {
			return 0, 0, cutShort(p)
		}
		f, err := parseMP3Frame(rest)
		if err != nil {
			return 0, 0, &FormatError{Offset: int64(p), Err: fmt.Errorf("after %d frames: %w", frames, err)}
		}
		if f.size > len(rest) {
			return 0, 0, cutShort(p)
		}
		p += f.size
		frames++
	}
	return p, frames, nil
}

// mp3Tag is the Xing or Info tag that encoders put into a first, silent frame.
type mp3Tag struct {
	present        bool
	frames         int // 0 if unknown
	gapless        bool
	delay, padding int // samples the encoder put before and after the sound
}

// readMP3Tag looks for the tag in the first frame. Layout: Xing's and LAME's
// public descriptions.
func readMP3Tag(frame []byte, mono bool) mp3Tag {
	p := 4 + 32 // header and side information
	if mono {
		p = 4 + 17
	}
	if len(frame) < p+8 || (string(frame[p:p+4]) != "Xing" && string(frame[p:p+4]) != "Info") {
		return mp3Tag{}
	}
	tag := mp3Tag{present: true}
	flags := frame[p+7]
	p += 8
	for bit, n := range []int{4, 4, 100, 4} { // frames, bytes, seek table, quality
		if flags>>bit&1 == 0 {
			continue
		}
		if bit == 0 && len(frame) >= p+4 {
			tag.frames = int(binary.BigEndian.Uint32(frame[p:]))
		}
		p += n
	}
	// The encoder's extension: nine bytes of name, delay and padding of twelve
	// bits each at 21.
	if len(frame) >= p+24 && frame[p] != 0 {
		tag.gapless = true
		tag.delay = int(frame[p+21])<<4 | int(frame[p+22])>>4
		tag.padding = int(frame[p+22]&15)<<8 | int(frame[p+23])
	}
	return tag
}
