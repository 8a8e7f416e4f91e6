package media

import (
	"os"
	"testing"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// model is the checkpoint below testdata whose goldens and media are used here.
const model = "inkling-tiny-random"

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pillow holds what the reference library makes of testdata/images, made by
// testdata/make.py.
type pillow struct{ *safetensors.Checkpoint }

func openPillow(t testing.TB) pillow {
	t.Helper()
	ck, err := safetensors.OpenFile("testdata/pillow.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
	})
	return pillow{ck}
}

// image returns one array [H, W, 3].
func (p pillow) image(t testing.TB, name string) *Image {
	t.Helper()
	x, ok := p.Tensor(name)
	if !ok || len(x.Shape) != 3 {
		t.Fatalf("no picture %q", name)
	}
	return &Image{H: int(x.Shape[0]), W: int(x.Shape[1]), Pix: p.Bytes(x)}
}

// pixelsClose fails the test unless the pictures have equal size and differ by
// at most tol levels everywhere.
func pixelsClose(t testing.TB, what string, got, want *Image, tol int) {
	t.Helper()
	if got.W != want.W || got.H != want.H || len(got.Pix) != len(want.Pix) {
		t.Errorf("%s: %d x %d with %d bytes, want %d x %d with %d", what, got.W, got.H, len(got.Pix), want.W, want.H, len(want.Pix))
		return
	}
	bad, worst, at := 0, 0, 0
	for i := range got.Pix {
		d := int(got.Pix[i]) - int(want.Pix[i])
		if d = max(d, -d); d > tol {
			bad++
		}
		if d > worst {
			worst, at = d, i
		}
	}
	if bad > 0 {
		t.Errorf("%s: %d of %d bytes differ by more than %d; worst at x %d, y %d, channel %d: got %d, want %d",
			what, bad, len(got.Pix), tol, at/3%got.W, at/3/got.W, at%3, got.Pix[at], want.Pix[at])
	}
}
