package kimik25

import (
	"cmp"
	"os"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// random is the reference's tiny random checkpoint.
const random = "kimi-k25-tiny-random"

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }

// randomFiles is the random checkpoint in F32.
func randomFiles(t testing.TB) tinymodel.Files {
	t.Helper()
	return tinymodel.KimiRandom.Files(t, convert.OutF32)
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
	return openModel(t, randomFiles(t).Model)
}

func openModel(t testing.TB, path string) *Model {
	t.Helper()
	m, err := models.Open(openGGUF(t, path), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.(*Model)
}

func newTestCache(t testing.TB, m *Model, seqs, size int, kv binding.DType) models.Cache {
	t.Helper()
	c, err := m.NewCache(seqs, size, kv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// batch is a step of sequence seq that wants the logits of every row, or of the last.
func batch(seq int, ids []int32, all bool) models.Batch {
	b := models.Batch{Seq: seq, Tokens: ids, Outputs: []int32{int32(len(ids) - 1)}}
	if all {
		b.Outputs = nil
		for i := range ids {
			b.Outputs = append(b.Outputs, int32(i))
		}
	}
	return b
}

// forward runs ids as one step of sequence 0.
func forward(t testing.TB, m *Model, c models.Cache, ids []int32, all bool) []float32 {
	t.Helper()
	b := batch(0, ids, all)
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
