package media

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testTone is the mean over the channels of the sounds in testdata/audio.
func testTone(i, rate, channels int) float64 {
	t := 2 * math.Pi * float64(i) / float64(rate)
	v := 0.4*math.Sin(440*t) + 0.2*math.Sin(1234.5*t)
	if channels == 2 {
		v *= 0.75 // the right channel has half the level
	}
	return v
}

// decibels is the power of the error relative to that of want.
func decibels(got []float32, want func(i int) float64) float64 {
	var e, p float64
	for i, v := range got {
		d := float64(v) - want(i)
		e += d * d
		p += want(i) * want(i)
	}
	return 10 * math.Log10(e/p)
}

// Each codec gives the tone that was encoded, sample for sample in time: a lossy
// one with noise, but without delay.
func TestDecodeAudio(t *testing.T) {
	for _, c := range []struct {
		name           string
		rate, channels int
		frames         int
		noise          float64 // dB
	}{
		{"stereo16.flac", 44100, 2, 13230, -85}, // rounding to 16 bits
		{"mono24.flac", 48000, 1, 2400, -130},
		{"stereo.ogg", 44100, 2, 13230, -20},
		{"cbr.mp3", 44100, 2, 13230, -20},
		{"vbr.mp3", 44100, 2, 13230, -20},
		{"mono48.mp3", 48000, 1, 14400, -20},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := DecodeAudio(context.Background(), c.name, readFile(t, "testdata/audio/"+c.name), AudioLimits{})
			if err != nil {
				t.Fatal(err)
			}
			if a.Rate != c.rate || len(a.Samples) != c.frames {
				t.Errorf("%d samples at %d, want %d at %d", len(a.Samples), a.Rate, c.frames, c.rate)
			}
			noise := decibels(a.Samples, func(i int) float64 { return testTone(i, c.rate, c.channels) })
			if !(noise < c.noise) {
				t.Errorf("noise %.1f dB, want below %g", noise, c.noise)
			}
		})
	}
}

// A tag before the sound is skipped, whatever the codec, and tags behind it too.
func TestDecodeAudioTags(t *testing.T) {
	id3 := append([]byte("ID3\x04\x00\x00\x00\x00\x01\x02"), make([]byte, 130)...)
	for _, name := range []string{"cbr.mp3", "stereo16.flac"} {
		data := readFile(t, "testdata/audio/"+name)
		plain, err := DecodeAudio(context.Background(), name, data, AudioLimits{})
		if err != nil {
			t.Fatal(err)
		}
		tagged := append(bytes.Clone(id3), data...)
		if strings.HasSuffix(name, ".mp3") {
			tagged = append(tagged, append([]byte("TAG"), make([]byte, 125)...)...)
		}
		a, err := DecodeAudio(context.Background(), name, tagged, AudioLimits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Samples) != len(plain.Samples) {
			t.Errorf("%s: %d samples with a tag, %d without", name, len(a.Samples), len(plain.Samples))
		}
	}
}

// Without the encoder's tag nothing is known of its delay, so every frame
// counts.
func TestDecodeMP3Untagged(t *testing.T) {
	a, err := DecodeAudio(context.Background(), "x", readFile(t, "testdata/audio/untagged.mp3"), AudioLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Samples); n%mp3FrameSamples != 0 || n < 13230 {
		t.Errorf("%d samples, want a multiple of %d from 13230 on", n, mp3FrameSamples)
	}
}

func TestDecodeAudioTruncated(t *testing.T) {
	t.Setenv("PATH", "")
	entries, err := os.ReadDir("testdata/audio")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if name == "mpeg2.mp3" {
			continue // not decoded here
		}
		data := readFile(t, filepath.Join("testdata/audio", name))
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{5, 40, 100, len(data) / 4, len(data) / 2, len(data) * 3 / 4, len(data) - 1} {
				_, err := DecodeAudio(context.Background(), name, data[:n:n], AudioLimits{})
				if err == nil {
					t.Errorf("the first %d of %d bytes decode", n, len(data))
				} else if !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "decoder stopped") {
					t.Errorf("%d bytes: %v", n, err)
				}
			}
		})
	}
}

// Ogg pages and MP3 frames have no room for a silent end: files cut between two
// of them are still found.
func TestDecodeAudioCutBetween(t *testing.T) {
	ogg := readFile(t, "testdata/audio/stereo.ogg")
	last := bytes.LastIndex(ogg, []byte("OggS"))
	mp3 := readFile(t, "testdata/audio/cbr.mp3")
	first, err := parseMP3Frame(mp3)
	if err != nil {
		t.Fatal(err)
	}
	flac := readFile(t, "testdata/audio/stereo16.flac")
	frame := bytes.LastIndex(flac, []byte{0xff, 0xf8})
	for name, data := range map[string][]byte{"ogg": ogg[:last], "mp3": mp3[:4*first.size+3], "flac": flac[:frame]} {
		if _, err := DecodeAudio(context.Background(), name, data, AudioLimits{}); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// What needs ffmpeg is refused by name when there is none.
func TestDecodeAudioWithoutFFmpeg(t *testing.T) {
	t.Setenv("PATH", "")
	for name, data := range map[string]string{
		"mp3 (MPEG-2)":   string(readFile(t, "testdata/audio/mpeg2.mp3")),
		"mp3 (MPEG-2.5)": "\xff\xe3\x18\xc4" + string(make([]byte, 100)),
		"only ffmpeg":    "\xff\xf1\x50\x80", // AAC
		"layer 2":        "\xff\xfd\x18\xc4" + string(make([]byte, 100)),
		"free bit rate":  "\xff\xfb\x00\xc4" + string(make([]byte, 100)),
		"ogg opus":       "OggS" + string(make([]byte, 24)) + "OpusHead",
		"ffmpeg":         "\x00\x00\x00\x20ftypM4A ",
	} {
		_, err := DecodeAudio(context.Background(), "clip", []byte(data), AudioLimits{})
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fakeTool puts a shell script in the place of ffmpeg or ffprobe.
func fakeTool(t *testing.T, name, script string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!"+sh+"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// streamedWAV is what ffmpeg writes to a pipe, as a printf format.
const streamedWAV = `RIFF\377\377\377\377WAVEfmt \020\000\000\000\003\000\001\000\200\076\000\000\000\372\000\000\004\000\040\000` +
	`LIST\004\000\000\000INFOdata\377\377\377\377` + `\000\000\000\077\000\000\200\276`

func TestFFmpegAudio(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
	}{
		{"samples", "printf '" + streamedWAV + "'", ""},
		{"complaint", "echo 'moov atom not found' >&2; exit 1", "ffmpeg: moov atom not found"},
		{"silent failure", "exit 3", "exit status 3"},
		{"failure at the end", "printf '" + streamedWAV + "'; echo broken >&2; exit 1", "ffmpeg: broken"},
		{"cut short", "echo '[mov] stream 0, offset 0x29af: partial file' >&2; printf '" + streamedWAV + "'", "file is cut short"},
		{"nothing", "exit 0", "no data chunk"},
		{"no samples", "printf '" + strings.TrimSuffix(streamedWAV, `\000\000\000\077\000\000\200\276`) + "'", "no samples"},
		{"half a sample", "printf '" + streamedWAV + `\001'`, "cut short"},
		{"other samples", `printf 'RIFF\000\000\000\000WAVEfmt \020\000\000\000\001\000\001\000\200\076\000\000\000\372\000\000\002\000\020\000data\377\377\377\377'`, "format tag 1"},
		{"endless", "printf '" + streamedWAV + "'; exec cat /dev/zero", "at most 600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeTool(t, "ffmpeg", c.script)
			a, err := DecodeAudio(context.Background(), "clip.m4a", []byte("something"), AudioLimits{})
			if c.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "clip.m4a: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Rate != 16000 || len(a.Samples) != 2 || a.Samples[0] != 0.5 || a.Samples[1] != -0.25 {
				t.Errorf("%d: %v", a.Rate, a.Samples)
			}
		})
	}
}

func TestFFmpegCancelled(t *testing.T) {
	fakeTool(t, "ffmpeg", "exec sleep 60")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := DecodeAudio(ctx, "clip", []byte("something"), AudioLimits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// With the real program the variants that are left to it come out right too.
func TestFFmpegInstalled(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	a, err := DecodeAudio(context.Background(), "mpeg2.mp3", readFile(t, "testdata/audio/mpeg2.mp3"), AudioLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Rate != 22050 || len(a.Samples) < 2205 {
		t.Fatalf("%d samples at %d, want 2205 or more at 22050", len(a.Samples), a.Rate)
	}
	noise := decibels(a.Samples[:2205], func(i int) float64 { return testTone(i, 22050, 1) })
	if !(noise < -15) {
		t.Errorf("noise %.1f dB", noise)
	}
}
