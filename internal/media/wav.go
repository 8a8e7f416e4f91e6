package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-audio/audio"
	"github.com/go-audio/wav"
)

// Format tags of the fmt chunk (mmreg.h).
const (
	wavPCM        = 1
	wavFloat      = 3
	wavALaw       = 6
	wavMuLaw      = 7
	wavExtensible = 0xfffe
)

// wavStreamed is the least data size that means "until the end". Programs that
// write to a pipe cannot know the size: ffmpeg leaves 0xFFFFFFFF, arecord
// 0x80000000, sox 0x7FFFF000 and a little more.
const wavStreamed = 0x7ffff000

// wavGUIDTail is what follows the format tag in the GUID of an extensible
// header.
const wavGUIDTail = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"

// wavInfo is what the chunks of a WAV file say.
type wavInfo struct {
	tag      uint16 // of the subformat, if the header is extensible
	channels int
	rate     int
	bits     int // of the container of a sample: 8, 16, 24, 32 or 64
	data     int // offset of the samples
	size     int // of the samples in bytes, -1 for "until the end"
}

// wavErr is a FormatError without the file's name, which the caller adds.
func wavErr(offset int, format string, args ...any) error {
	return &FormatError{Offset: int64(offset), Err: fmt.Errorf(format, args...)}
}

// parseWAV walks the chunks up to the samples; data may end after their start.
// This is not left to the library, which takes memory for whatever size a fmt
// chunk states, does not look into extensible headers, and reads a data size of
// 0xFFFFFFFF as zero.
func parseWAV(data []byte) (wavInfo, error) {
	var info wavInfo
	size64 := int64(-1) // of the samples, from an RF64 header
	for p := 12; ; {
		if p+8 > len(data) {
			return info, wavErr(p, "no data chunk")
		}
		id, n := string(data[p:p+4]), int64(binary.LittleEndian.Uint32(data[p+4:]))
		p += 8
		if id == "data" {
			if info.channels == 0 {
				return info, wavErr(p-8, "data chunk before the fmt chunk")
			}
			info.data, info.size = p, int(n)
			if n == math.MaxUint32 && size64 >= 0 && size64 <= math.MaxInt {
				info.size = int(size64)
			} else if n >= wavStreamed {
				info.size = -1
			}
			return info, nil
		}
		if n > int64(len(data)-p) {
			return info, wavErr(p-8, "chunk %q of %d bytes, the file has %d more", id, n, len(data)-p)
		}
		body := data[p : p+int(n)]
		switch {
		case id == "fmt ":
			if err := info.parseFormat(body, p); err != nil {
				return info, err
			}
		case id == "ds64" && len(body) >= 16:
			size64 = int64(binary.LittleEndian.Uint64(body[8:]))
		}
		p += int(n + n&1) // chunks start at even offsets
	}
}

// parseFormat reads the fmt chunk whose body is at offset p.
func (info *wavInfo) parseFormat(body []byte, p int) error {
	if len(body) < 16 {
		return wavErr(p, "fmt chunk of %d bytes, want 16 or more", len(body))
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(body[i:])) }
	info.tag = uint16(u16(0))
	info.channels = u16(2)
	info.rate = int(binary.LittleEndian.Uint32(body[4:]))
	align, bits := u16(12), u16(14)
	if info.tag == wavExtensible {
		if len(body) < 40 {
			return wavErr(p, "extensible fmt chunk of %d bytes, want 40", len(body))
		}
		info.tag = uint16(u16(24))
		if string(body[26:40]) != wavGUIDTail {
			return &notOursError{fmt.Sprintf("wav (subformat %x)", body[24:40])}
		}
	}
	switch info.tag {
	case wavPCM, wavFloat, wavALaw, wavMuLaw:
	default:
		return &notOursError{fmt.Sprintf("wav (format tag %#x)", info.tag)}
	}
	if info.channels < 1 || align%info.channels != 0 {
		return wavErr(p, "%d bytes a frame for %d channels", align, info.channels)
	}
	// Samples of, say, 12 bits stand left-justified in a container of whole
	// bytes, so only the container matters.
	info.bits = align / info.channels * 8
	ok := false
	switch info.tag {
	case wavPCM:
		ok = info.bits >= 8 && info.bits <= 32
	case wavFloat:
		ok = info.bits == 32 || info.bits == 64
	case wavALaw, wavMuLaw:
		ok = info.bits == 8
	}
	if !ok || bits > info.bits || bits <= info.bits-8 {
		return wavErr(p, "%d-bit samples of format tag %d in %d bits", bits, info.tag, info.bits)
	}
	return nil
}

func decodeWAV(data []byte, lim AudioLimits) (*Audio, error) {
	info, err := parseWAV(data)
	if err != nil {
		return nil, err
	}
	m, err := newMixdown(info.rate, info.channels, lim)
	if err != nil {
		return nil, err
	}
	samples := data[info.data:]
	if info.size >= 0 {
		if info.size > len(samples) {
			return nil, wavErr(info.data-8, "data chunk of %d bytes, the file has %d: it is cut short", info.size, len(samples))
		}
		samples = samples[:info.size]
	}
	frame := info.channels * info.bits / 8
	if extra := len(samples) % frame; extra != 0 {
		if info.size >= 0 {
			return nil, wavErr(info.data-8, "data chunk of %d bytes is no multiple of the frame size %d", len(samples), frame)
		}
		samples = samples[:len(samples)-extra] // a stream may have been stopped anywhere
	}
	if int64(len(samples)/frame) > m.frames {
		return nil, errTooLong
	}
	m.Samples = make([]float32, 0, len(samples)/frame)
	if info.bits == 64 { // unknown to the library
		for ; len(samples) >= 8; samples = samples[8:] {
			if err := m.add(math.Float64frombits(binary.LittleEndian.Uint64(samples))); err != nil {
				return nil, err
			}
		}
		return &m.Audio, nil
	}
	return &m.Audio, m.addPCM(samples, info)
}

// addPCM reads the samples with the library, which returns integers as they are
// stored, and gives them their meaning.
func (m *mixdown) addPCM(samples []byte, info wavInfo) error {
	value := info.sampleFunc()
	d := wav.NewDecoder(&plainWAV{io.MultiReader(
		bytes.NewReader(plainHeader(len(samples), info)), bytes.NewReader(samples))})
	buf := &audio.IntBuffer{Data: make([]int, 4096)}
	for left := len(samples) / (info.bits / 8); left > 0; {
		n, err := d.PCMBuffer(buf)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%d samples are missing", left)
		}
		for _, v := range buf.Data[:min(n, left)] {
			if err := m.add(value(v)); err != nil {
				return err
			}
		}
		left -= n
	}
	return nil
}

// sampleFunc returns the value of a stored integer.
func (info wavInfo) sampleFunc() func(int) float64 {
	switch {
	case info.tag == wavFloat:
		return func(v int) float64 { return float64(math.Float32frombits(uint32(v))) }
	case info.tag == wavALaw:
		return func(v int) float64 { return aLaw(uint8(v)) }
	case info.tag == wavMuLaw:
		return func(v int) float64 { return muLaw(uint8(v)) }
	case info.bits == 8:
		return func(v int) float64 { return float64(v-128) / 128 }
	}
	scale := 1 / float64(int64(1)<<(info.bits-1))
	return func(v int) float64 { return float64(v) * scale }
}

// plainHeader is the least header that makes the library read n bytes of
// samples as integers of the container's width.
func plainHeader(n int, info wavInfo) []byte {
	le := binary.LittleEndian
	frame := info.channels * info.bits / 8
	h := []byte("RIFF")
	h = le.AppendUint32(h, uint32(36+n))
	h = append(h, "WAVEfmt "...)
	h = le.AppendUint32(h, 16)
	h = le.AppendUint16(h, wavPCM)
	h = le.AppendUint16(h, uint16(info.channels))
	h = le.AppendUint32(h, uint32(info.rate))
	h = le.AppendUint32(h, uint32(info.rate*frame))
	h = le.AppendUint16(h, uint16(frame))
	h = le.AppendUint16(h, uint16(info.bits))
	h = append(h, "data"...)
	return le.AppendUint32(h, uint32(n))
}

// plainWAV is the library's view of a file. The library seeks only if other
// chunks stand before the fmt chunk, and there are none.
type plainWAV struct{ io.Reader }

func (*plainWAV) Seek(int64, int) (int64, error) {
	return 0, fmt.Errorf("seek in a wav stream: %w", errors.ErrUnsupported)
}

// aLaw expands one byte of G.711 A-law to -1..1.
func aLaw(b uint8) float64 {
	b ^= 0x55
	exponent, mantissa := int(b>>4)&7, int(b&15)
	v := mantissa<<4 + 8
	if exponent > 0 {
		v = (v + 256) << (exponent - 1)
	}
	if b&0x80 == 0 {
		v = -v
	}
	return float64(v) / 32768
}

// muLaw expands one byte of G.711 mu-law to -1..1.
func muLaw(b uint8) float64 {
	b = ^b
	v := (int(b&15)<<3+132)<<(b>>4&7) - 132
	if b&0x80 != 0 {
		v = -v
	}
	return float64(v) / 32768
}
