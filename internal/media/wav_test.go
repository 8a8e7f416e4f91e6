package media

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

// wavSpec describes a WAV file to build.
type wavSpec struct {
	tag        uint16
	extensible bool
	bits       int // container
	valid      int // bits a sample, 0 for bits
	channels   int
	rate       int
	samples    []byte
}

func (s wavSpec) fmtChunk() []byte {
	le := binary.LittleEndian
	tag, valid := s.tag, s.valid
	if valid == 0 {
		valid = s.bits
	}
	if s.extensible {
		tag = wavExtensible
	}
	align := s.channels * s.bits / 8
	b := le.AppendUint16(nil, tag)
	b = le.AppendUint16(b, uint16(s.channels))
	b = le.AppendUint32(b, uint32(s.rate))
	b = le.AppendUint32(b, uint32(s.rate*align))
	b = le.AppendUint16(b, uint16(align))
	if !s.extensible {
		return le.AppendUint16(b, uint16(valid))
	}
	b = le.AppendUint16(b, uint16(s.bits))
	b = le.AppendUint16(b, 22)
	b = le.AppendUint16(b, uint16(valid))
	b = le.AppendUint32(b, 0) // speakers
	b = le.AppendUint16(b, s.tag)
	return append(b, wavGUIDTail...)
}

// riff joins chunks, with padding, to a file.
func riff(chunks ...[]byte) []byte {
	var body []byte
	for _, c := range chunks {
		body = append(body, c...)
		if len(c)%2 == 1 {
			body = append(body, 0)
		}
	}
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(b, "WAVE"...), body...)
}

func riffChunk(id string, body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(body))), body...)
}

func (s wavSpec) file() []byte {
	return riff(riffChunk("fmt ", s.fmtChunk()), riffChunk("data", s.samples))
}

// encodings are the ways to store a level, with the level that comes back.
var encodings = []struct {
	name   string
	tag    uint16
	bits   int
	encode func(b []byte, v float64) []byte
	decode func(v float64) float64
}{
	{
		"u8", wavPCM, 8,
		func(b []byte, v float64) []byte { return append(b, uint8(math.Floor(v*128)+128)) },
		func(v float64) float64 { return math.Floor(v*128) / 128 },
	},
	{
		"s16", wavPCM, 16,
		func(b []byte, v float64) []byte { return binary.LittleEndian.AppendUint16(b, uint16(int16(v*32768))) },
		func(v float64) float64 { return math.Trunc(v*32768) / 32768 },
	},
	{
		"s24", wavPCM, 24,
		func(b []byte, v float64) []byte {
			n := int32(v * (1 << 23))
			return append(b, byte(n), byte(n>>8), byte(n>>16))
		},
		func(v float64) float64 { return math.Trunc(v*(1<<23)) / (1 << 23) },
	},
	{
		"s32", wavPCM, 32,
		func(b []byte, v float64) []byte { return binary.LittleEndian.AppendUint32(b, uint32(int32(v*(1<<31)))) },
		func(v float64) float64 { return math.Trunc(v*(1<<31)) / (1 << 31) },
	},
	{
		"f32", wavFloat, 32,
		func(b []byte, v float64) []byte {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		},
		func(v float64) float64 { return float64(float32(v)) },
	},
	{
		"f64", wavFloat, 64,
		func(b []byte, v float64) []byte { return binary.LittleEndian.AppendUint64(b, math.Float64bits(v)) },
		func(v float64) float64 { return v },
	},
	// For the companded formats the level chooses one of the 256 codes; what
	// each code means is tested on its own.
	{
		"alaw", wavALaw, 8,
		func(b []byte, v float64) []byte { return append(b, uint8(math.Floor(v*128)+128)) },
		func(v float64) float64 { return aLaw(uint8(math.Floor(v*128) + 128)) },
	},
	{
		"ulaw", wavMuLaw, 8,
		func(b []byte, v float64) []byte { return append(b, uint8(math.Floor(v*128)+128)) },
		func(v float64) float64 { return muLaw(uint8(math.Floor(v*128) + 128)) },
	},
}

// Each encoding, plain and extensible, with one, two and six channels, at each
// usual rate.
func TestWAVMatrix(t *testing.T) {
	const frames = 5 // odd, so that 8-bit mono needs a pad byte
	for _, e := range encodings {
		for _, extensible := range []bool{false, true} {
			for _, channels := range []int{1, 2, 6} {
				for _, rate := range []int{8000, 16000, 22050, 44100, 48000} {
					name := fmt.Sprintf("%s/extensible=%t/%dch/%d", e.name, extensible, channels, rate)
					t.Run(name, func(t *testing.T) {
						spec := wavSpec{tag: e.tag, extensible: extensible, bits: e.bits, channels: channels, rate: rate}
						want := make([]float32, frames)
						for i := range want {
							var sum float64
							for c := range channels {
								v := []float64{0, 0.5, -0.5, 0.999, -1}[i] * (1 - float64(c)/8)
								spec.samples = e.encode(spec.samples, v)
								sum += e.decode(v)
							}
							want[i] = float32(sum / float64(channels))
						}
						a, err := DecodeAudio(context.Background(), name, spec.file(), AudioLimits{})
						if err != nil {
							t.Fatal(err)
						}
						if a.Rate != rate {
							t.Errorf("rate %d", a.Rate)
						}
						testutil.Close(t, "samples", a.Samples, want, testutil.Tol{})
					})
				}
			}
		}
	}
}

// Values of G.711 (tables 1 and 2): the smallest, a middle and the largest code
// of each sign.
func TestCompanding(t *testing.T) {
	for _, c := range []struct {
		code     uint8
		aLaw, mu int // of 32768
	}{
		{0x00, -5504, -32124},
		{0x80, 5504, 32124},
		{0x55, -8, -716},
		{0xd5, 8, 716},
		{0x2a, -32256, -5372},
		{0xaa, 32256, 5372},
		{0x7f, -848, 0},
		{0xff, 848, 0},
	} {
		if got := aLaw(c.code) * 32768; got != float64(c.aLaw) {
			t.Errorf("A-law %#x: %g, want %d", c.code, got, c.aLaw)
		}
		if got := muLaw(c.code) * 32768; got != float64(c.mu) {
			t.Errorf("mu-law %#x: %g, want %d", c.code, got, c.mu)
		}
	}
}

// Oddities that a file may have and still be read right.
func TestWAVAccepts(t *testing.T) {
	mono := wavSpec{tag: wavPCM, bits: 16, channels: 1, rate: 8000, samples: []byte{0, 0x40, 0, 0xc0}}
	format, data := riffChunk("fmt ", mono.fmtChunk()), riffChunk("data", mono.samples)
	want := []float32{0.5, -0.5}
	size := func(n uint32, samples ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte("data"), n), samples...)
	}
	rf64 := riff(riffChunk("ds64", append(make([]byte, 8), 4, 0, 0, 0, 0, 0, 0, 0)), format, size(math.MaxUint32, mono.samples...), riffChunk("LIST", []byte("more")))
	copy(rf64, "RF64")
	twelve := mono
	twelve.valid = 12
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"chunks before and between", riff(riffChunk("JUNK", make([]byte, 3)), format, riffChunk("LIST", make([]byte, 5)), data)},
		{"chunk behind", riff(format, data, riffChunk("LIST", []byte("abc")))},
		{"long fmt chunk", riff(riffChunk("fmt ", append(mono.fmtChunk(), make([]byte, 100)...)), data)},
		{"streamed by ffmpeg", riff(format, size(0xffffffff, mono.samples...))},
		{"streamed by arecord", riff(format, size(0x80000000, mono.samples...))},
		{"streamed by sox", riff(format, size(0x7ffff024, mono.samples...))},
		{"stream stopped within a sample", append(riff(format), size(0xffffffff, append(mono.samples, 7)...)...)},
		{"wrong RIFF size", append([]byte("RIFF\x01\x00\x00\x00WAVE"), riff(format, data)[12:]...)},
		{"RF64", rf64},
		{"12 bits in 16", twelve.file()},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := DecodeAudio(context.Background(), "x.wav", c.data, AudioLimits{})
			if err != nil {
				t.Fatal(err)
			}
			testutil.Close(t, "samples", a.Samples, want, testutil.Tol{})
		})
	}
}

func TestWAVRefusals(t *testing.T) {
	t.Setenv("PATH", "") // no ffmpeg
	mono := wavSpec{tag: wavPCM, bits: 16, channels: 1, rate: 8000, samples: []byte{0, 0x40, 0, 0xc0}}
	with := func(change func(*wavSpec)) []byte {
		s := mono
		change(&s)
		return s.file()
	}
	format, data := riffChunk("fmt ", mono.fmtChunk()), riffChunk("data", mono.samples)
	huge := append([]byte("fmt \xf0\xff\xff\xff"), mono.fmtChunk()...)
	guid := riffChunk("fmt ", func() []byte {
		s := mono
		s.extensible = true
		return append(s.fmtChunk()[:39], 0)
	}())
	nan := wavSpec{tag: wavFloat, bits: 32, channels: 1, rate: 8000, samples: []byte{0, 0, 0xc0, 0x7f}}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"no samples", with(func(s *wavSpec) { s.samples = nil }), "no samples"},
		{"no data chunk", riff(format), "no data chunk"},
		{"header only", []byte("RIFF\x04\x00\x00\x00WAVE"), "no data chunk"},
		{"data before fmt", riff(data, format), "before the fmt chunk"},
		{"cut short", mono.file()[:46], "cut short"},
		{"data larger than the file", append(riff(format), "data\x10\x00\x00\x00ab"...), "cut short"},
		{"huge fmt chunk", riff(huge, data), `chunk "fmt " of 4294967280 bytes`},
		{"short fmt chunk", riff(riffChunk("fmt ", make([]byte, 14)), data), "fmt chunk of 14 bytes"},
		{"half a sample", with(func(s *wavSpec) { s.samples = []byte{1, 2, 3} }), "no multiple of the frame size"},
		{"no channels", with(func(s *wavSpec) { s.channels = 0 }), "0 channels"},
		{"65 channels", with(func(s *wavSpec) { s.channels = 65; s.samples = make([]byte, 130) }), "65 channels"},
		{"rate 0", with(func(s *wavSpec) { s.rate = 0 }), "0 samples a second"},
		{"rate 500000", with(func(s *wavSpec) { s.rate = 500000 }), "500000 samples a second"},
		{"40 bits", with(func(s *wavSpec) { s.bits = 40; s.samples = make([]byte, 5) }), "40-bit"},
		{"float of 16 bits", with(func(s *wavSpec) { s.tag = wavFloat }), "16-bit samples of format tag 3"},
		{"8 bits in 16", with(func(s *wavSpec) { s.valid = 8 }), "8-bit samples"},
		{"NaN", nan.file(), "sample 0 is not a number"},
		{"ADPCM", with(func(s *wavSpec) { s.tag = 2 }), "format tag 0x2"},
		{"unknown subformat", riff(guid, data), "subformat"},
		{"big endian", []byte("RIFX\x04\x00\x00\x00WAVE"), "ffmpeg"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeAudio(context.Background(), "x.wav", c.data, AudioLimits{})
			if err == nil || !strings.HasPrefix(err.Error(), "x.wav: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// One sample more than the limit is refused; exactly the limit is not.
func TestAudioLimits(t *testing.T) {
	spec := wavSpec{tag: wavPCM, bits: 8, channels: 1, rate: 1000, samples: make([]byte, 600*1000)}
	if a, err := DecodeAudio(context.Background(), "x", spec.file(), AudioLimits{}); err != nil || len(a.Samples) != 600000 {
		t.Errorf("ten minutes: %v", err)
	}
	spec.samples = append(spec.samples, 128)
	_, err := DecodeAudio(context.Background(), "x", spec.file(), AudioLimits{})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.What != "seconds" || limit.Max != 600 {
		t.Errorf("ten minutes and a sample: %v", err)
	}
	if _, err := DecodeAudio(context.Background(), "x", spec.file(), AudioLimits{MaxSeconds: 601}); err != nil {
		t.Errorf("with a limit of 601 s: %v", err)
	}
	_, err = DecodeAudio(context.Background(), "x", spec.file(), AudioLimits{MaxBytes: 1000})
	if !errors.As(err, &limit) || limit.What != "bytes" {
		t.Errorf("with a limit of 1000 bytes: %v", err)
	}
	for _, name := range []string{"stereo16.flac", "stereo.ogg", "cbr.mp3"} {
		_, err := DecodeAudio(context.Background(), name, readFile(t, "testdata/audio/"+name), AudioLimits{MaxSeconds: 0.2})
		if !errors.As(err, &limit) || limit.What != "seconds" {
			t.Errorf("%s of 0.3 s with a limit of 0.2: %v", name, err)
		}
	}
}
