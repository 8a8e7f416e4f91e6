package inkling

import (
	"cmp"
	"os"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// random is the reference's tiny random checkpoint.
const random = "inkling-tiny-random"

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }

// randomFiles is the random checkpoint in F32.
func randomFiles(t testing.TB) tinymodel.Files {
	t.Helper()
	return tinymodel.InklingRandom.Files(t, convert.OutF32)
}

// newBackend opens the CPU, or the device that INKLING_TEST_DEVICE names.
func newBackend(t testing.TB) *binding.Backend {
	t.Helper()
	devs, err := binding.FindDevices(cmp.Or(os.Getenv("INKLING_TEST_DEVICE"), "cpu"))
	if err != nil {
		t.Fatal(err)
	}
	be, err := binding.NewBackend(devs[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	testutil.OnDevice(t, be.Device().Name(), be.Device().Description())
	return be
}

func openGGUF(t testing.TB, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// loadRandom converts the random checkpoint to F32 and opens its text model.
func loadRandom(t testing.TB) *Model {
	t.Helper()
	m, err := models.Open(openGGUF(t, randomFiles(t).Model), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.(*Model)
}

// loadRandomTowers opens the towers of the random checkpoint.
func loadRandomTowers(t testing.TB) *Projector {
	t.Helper()
	p, err := models.OpenProjector(openGGUF(t, randomFiles(t).MMProj), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.(*Projector)
}

func newTestCache(t testing.TB, m *Model, nCtx int, kv binding.DType) models.Cache {
	t.Helper()
	c, err := m.NewCache(1, nCtx, kv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// forward runs ids as one step and returns the logits of every row, or of the last.
func forward(t testing.TB, m *Model, c models.Cache, ids []int32, all bool) []float32 {
	t.Helper()
	b := models.Batch{Tokens: ids, Outputs: []int32{int32(len(ids) - 1)}}
	if all {
		b.Outputs = nil
		for i := range ids {
			b.Outputs = append(b.Outputs, int32(i))
		}
	}
	logits := make([]float32, len(b.Outputs)*m.Config().Vocab)
	if err := m.Forward(c, []models.Batch{b}, models.Outputs{Logits: logits}); err != nil {
		t.Fatal(err)
	}
	return logits
}

func goldenIDs(g *testutil.Golden, name string) []int32 {
	var ids []int32
	for _, v := range g.Ints(name) {
		ids = append(ids, int32(v))
	}
	return ids
}
