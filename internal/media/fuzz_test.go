package media

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds adds the files of a folder of testdata whose names end in one of the
// suffixes.
func seeds(f *testing.F, dir string, suffixes ...string) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", dir))
	if err != nil {
		f.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		for _, s := range suffixes {
			if strings.HasSuffix(e.Name(), s) {
				f.Add(readFile(f, filepath.Join("testdata", dir, e.Name())))
				n++
			}
		}
	}
	if n == 0 {
		f.Fatalf("no seed in %s", dir)
	}
}

// checkError fails the test unless err is one of the package's errors, with the
// file's name. panics tells whether the decoder below is known to panic on
// damaged data, which guard catches.
func checkError(t *testing.T, err error, panics bool) {
	t.Helper()
	var format *FormatError
	var unsupported *UnsupportedError
	var limit *LimitError
	if !errors.As(err, &format) && !errors.As(err, &unsupported) && !errors.As(err, &limit) {
		t.Errorf("error of type %T: %v", err, err)
	}
	if !strings.HasPrefix(err.Error(), "fuzz: ") {
		t.Errorf("error without the file's name: %v", err)
	}
	if !panics && strings.Contains(err.Error(), "decoder stopped") {
		t.Errorf("panic: %v", err)
	}
}

func fuzzImage(f *testing.F, suffixes ...string) {
	seeds(f, "images", suffixes...)
	lim := Limits{MaxPixels: 1 << 16, MaxBytes: 1 << 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		im, err := DecodeImage("fuzz", data, lim)
		if err != nil {
			checkError(t, err, false)
			return
		}
		if n := im.W * im.H; n < 1 || int64(n) > lim.MaxPixels || len(im.Pix) != 3*n {
			t.Errorf("%d x %d pixels in %d bytes", im.W, im.H, len(im.Pix))
		}
	})
}

func FuzzPNG(f *testing.F)  { fuzzImage(f, ".png") }
func FuzzJPEG(f *testing.F) { fuzzImage(f, ".jpg") }
func FuzzWebP(f *testing.F) { fuzzImage(f, ".webp") }
func FuzzGIF(f *testing.F)  { fuzzImage(f, ".gif") }
func FuzzBMP(f *testing.F)  { fuzzImage(f, ".bmp") }
func FuzzTIFF(f *testing.F) { fuzzImage(f, ".tif") }

func FuzzEXIF(f *testing.F) {
	f.Add([]byte("II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Add([]byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o := exifOrientation(data); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}

// FuzzAnimation plays all frames of animated pictures.
func FuzzAnimation(f *testing.F) {
	seeds(f, "images", ".gif", "lossy.webp", "lossless.webp", "rgba.png")
	opts := VideoOptions{Limits: Limits{MaxPixels: 1 << 12, MaxBytes: 1 << 14}}
	f.Fuzz(func(t *testing.T, data []byte) {
		format, err := sniffImage("fuzz", data)
		if err != nil || int64(len(data)) > opts.Limits.MaxBytes {
			return
		}
		src, err := openAnimation("fuzz", format.name, data, opts)
		if err != nil {
			checkError(t, err, false)
			return
		}
		n := 0
		err = src.frames(context.Background(), all(src.Timeline), func(im *Image) error {
			n++
			if len(im.Pix) != im.W*im.H*3 {
				t.Errorf("frame %d: %d x %d pixels in %d bytes", n, im.W, im.H, len(im.Pix))
			}
			return nil
		})
		if err != nil {
			checkError(t, err, false)
		} else if n != len(src.Start) {
			t.Errorf("%d frames of %d", n, len(src.Start))
		}
	})
}

func fuzzAudio(f *testing.F, panics bool) {
	lim := AudioLimits{MaxSeconds: 2, MaxBytes: 1 << 18}
	f.Fuzz(func(t *testing.T, data []byte) {
		t.Setenv("PATH", "") // nothing is handed to ffmpeg
		a, err := DecodeAudio(context.Background(), "fuzz", data, lim)
		if err != nil {
			checkError(t, err, panics)
			return
		}
		if n := len(a.Samples); n == 0 || float64(n) > lim.MaxSeconds*float64(a.Rate) {
			t.Errorf("%d samples at %d", n, a.Rate)
		}
	})
}

func FuzzWAV(f *testing.F) {
	for _, e := range encodings {
		for _, extensible := range []bool{false, true} {
			s := wavSpec{tag: e.tag, extensible: extensible, bits: e.bits, channels: 2, rate: 16000}
			for range 6 {
				s.samples = e.encode(s.samples, 0.25)
			}
			f.Add(s.file())
		}
	}
	fuzzAudio(f, false)
}

func FuzzFLAC(f *testing.F) {
	seeds(f, "audio", ".flac")
	fuzzAudio(f, true)
}

func FuzzVorbis(f *testing.F) {
	seeds(f, "audio", ".ogg")
	fuzzAudio(f, true)
}

func FuzzMP3(f *testing.F) {
	seeds(f, "audio", ".mp3")
	fuzzAudio(f, true)
}
