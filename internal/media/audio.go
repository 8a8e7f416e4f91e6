package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
)

// Audio is decoded sound: the mean over the channels, in -1..1 for integer
// formats.
type Audio struct {
	Rate    int       // samples a second
	Samples []float32 // never empty
}

// AudioLimits bounds what DecodeAudio accepts. A zero field means the default.
type AudioLimits struct {
	MaxSeconds float64 // default DefaultMaxSeconds
	MaxBytes   int64   // size of the file; default 256 MiB
}

const (
	// DefaultMaxSeconds is the longest clip: 12,000 tokens at 20 a second, the
	// limit of the other servers of this model.
	DefaultMaxSeconds = 600

	minRate, maxRate = 1000, 384000
	maxChannels      = 64
)

func (l AudioLimits) seconds() float64 {
	if l.MaxSeconds > 0 {
		return l.MaxSeconds
	}
	return DefaultMaxSeconds
}

// audioCodec decodes one format. It returns a notOursError for variants that are
// left to ffmpeg.
type audioCodec struct {
	name   string
	magic  string
	decode func(data []byte, lim AudioLimits) (*Audio, error)
}

var audioCodecs = []audioCodec{
	{"wav", "RIFF????WAVE", decodeWAV},
	{"wav", "RF64????WAVE", decodeWAV},
	{"flac", "fLaC", decodeFLAC},
	{"ogg", "OggS", decodeVorbis},
	{"mp3", "\xff", decodeMP3},
}

// notOursError says which variant of a format is left to ffmpeg; it may be
// unknown.
type notOursError struct{ variant string }

func (e *notOursError) Error() string { return e.variant }

// errTooLong stops a decoder at the limit.
var errTooLong = errors.New("too long")

// DecodeAudio decodes a sound file to mono: WAV (integer, float, A-law and
// mu-law, plain and extensible), FLAC, Ogg Vorbis and MPEG-1 MP3 by itself, and
// everything else through ffmpeg if that is installed. Nothing is resampled or
// normalised. name appears in errors only.
//
// A file that is cut short or has no samples is an error. Errors are
// [FormatError], [UnsupportedError] or [LimitError], or the context's.
func DecodeAudio(ctx context.Context, name string, data []byte, lim AudioLimits) (*Audio, error) {
	max := Limits{MaxBytes: lim.MaxBytes}.bytes()
	if n := int64(len(data)); n > max {
		return nil, &LimitError{File: name, What: "bytes", Found: n, Max: max}
	}
	if len(data) == 0 {
		return nil, &FormatError{File: name, Offset: -1, Err: errors.New("empty file")}
	}
	format := ""
	for _, c := range audioCodecs {
		if !hasMagic(skipID3(data), c.magic) {
			continue
		}
		var a *Audio
		err := guard(func() (err error) {
			a, err = c.decode(skipID3(data), lim)
			return err
		})
		var foreign *notOursError
		if errors.As(err, &foreign) {
			format = foreign.variant
			break
		}
		if err == nil && len(a.Samples) == 0 {
			err = errors.New("no samples")
		}
		if err != nil {
			return nil, audioErr(name, c.name, lim, err)
		}
		return a, nil
	}
	return ffmpegAudio(ctx, name, format, data, lim)
}

// audioErr completes a codec's error with what only the caller knows.
func audioErr(name, format string, lim AudioLimits, err error) error {
	if errors.Is(err, errTooLong) {
		return &LimitError{File: name, What: "seconds", Found: int64(lim.seconds()) + 1, Max: int64(lim.seconds())}
	}
	return formatErr(name, format, err)
}

// skipID3 drops an ID3v2 tag from the front, as MP3 and some FLAC files have.
func skipID3(data []byte) []byte {
	if len(data) < 10 || !bytes.HasPrefix(data, []byte("ID3")) {
		return data
	}
	n := 10 // size: four bytes of seven bits
	n += int(data[6]&127)<<21 | int(data[7]&127)<<14 | int(data[8]&127)<<7 | int(data[9]&127)
	if data[5]&0x10 != 0 { // footer
		n += 10
	}
	return data[min(n, len(data)):]
}

// mixdown collects the mean over the channels of interleaved samples.
type mixdown struct {
	Audio
	channels int
	frames   int64 // most that are taken

	sum  float64 // over the channels of the frame in progress
	have int
}

// newMixdown checks what a header claims about a clip.
func newMixdown(rate, channels int, lim AudioLimits) (*mixdown, error) {
	if rate < minRate || rate > maxRate {
		return nil, fmt.Errorf("%d samples a second, want %d to %d", rate, minRate, maxRate)
	}
	if channels < 1 || channels > maxChannels {
		return nil, fmt.Errorf("%d channels, want 1 to %d", channels, maxChannels)
	}
	return &mixdown{Audio: Audio{Rate: rate}, channels: channels, frames: int64(lim.seconds() * float64(rate))}, nil
}

// add takes the next sample of the next channel.
func (m *mixdown) add(v float64) error {
	m.sum += v
	if m.have++; m.have < m.channels {
		return nil
	}
	mean := m.sum / float64(m.channels)
	m.sum, m.have = 0, 0
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return fmt.Errorf("sample %d is not a number", len(m.Samples))
	}
	if int64(len(m.Samples)) >= m.frames {
		return errTooLong
	}
	m.Samples = append(m.Samples, float32(mean))
	return nil
}
