package doctor

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
	_ "github.com/inkling-go/inkling/models/inkling"
	_ "github.com/inkling-go/inkling/models/kimik25"
)

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }

var onCPU = devices.Options{Device: "cpu"}

// TestAdvice gives a model less and less memory.
func TestAdvice(t *testing.T) {
	path := tinymodel.Inkling.Files(t, convert.OutF16).Model
	check := func(ctx, parallel int, room int64) *Report {
		t.Helper()
		r, err := Check(Options{Model: path, Devices: onCPU, Context: ctx, Parallel: parallel, KV: binding.F16, UBatch: 512, Memory: machine.Memory{Total: 1 << 40, Available: room}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	last := func(r *Report) Row { return r.Contexts[len(r.Contexts)-1] }
	all := check(8192, 1, 1<<40)
	if d := cmp.Diff([]int{4096, 8192}, []int{all.Contexts[0].Context, last(all).Context}); d != "" || len(all.Contexts) != 2 {
		t.Fatalf("contexts %v (-want +got):\n%s", all.Contexts, d)
	}
	need := last(all).Total
	for _, tc := range []struct {
		name     string
		parallel int
		room     int64
		fits     Fit
		want     []string // beginnings of the advice
	}{
		{"just enough", 1, need, Fits, []string{}},
		{"a byte less", 1, need - 1, Slow, []string{"--kv q8_0: ", "--ctx-size 7936 is", "a smaller quantisation: q8_0 "}},
		{"the weights do not fit", 1, need - all.Weights[0].Bytes, Slow, []string{"--ctx-size ", "19.6 MiB more memory: "}},
		{"the cache does not", 1, need - all.Weights[0].Bytes - 1, Lacks, []string{"--kv q8_0: ", "--ctx-size 7936 is"}},
		{"nothing does", 1, 1 << 20, Lacks, []string{}},
		{"two sequences", 2, need, Slow, []string{"--parallel 1: ", "--kv q8_0: ", "--ctx-size "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := check(8192, tc.parallel, tc.room)
			if got := last(r).Fits; got != tc.fits {
				t.Errorf("fits: %s, want %s", got, tc.fits)
			}
			t.Logf("%q", r.Advice)
			for i, begins := range tc.want {
				if i >= len(r.Advice) || !strings.HasPrefix(r.Advice[i], begins) {
					t.Fatalf("advice %q, want lines that begin with %q", r.Advice, tc.want)
				}
			}
			if (len(r.Advice) == 0) != (tc.fits == Fits) {
				t.Errorf("advice %q where it fits: %s", r.Advice, tc.fits)
			}
		})
	}
}

// TestCheckErrors: a model that can not be opened.
func TestCheckErrors(t *testing.T) {
	good := Options{Model: tinymodel.Inkling.Files(t, convert.OutF16).Model, Devices: onCPU, KV: binding.F16, UBatch: 512}
	for name, change := range map[string]func(o *Options){
		"no such file":     func(o *Options) { o.Model = "nowhere.gguf" },
		"no text model":    func(o *Options) { o.Model = tinymodel.Inkling.Files(t, convert.OutF16).MMProj },
		"no projector":     func(o *Options) { o.MMProj = "nowhere.gguf" },
		"context too long": func(o *Options) { o.Context = 1 << 20 },
		"type of keys":     func(o *Options) { o.KV = binding.DType(gguf.Q4_K) },
		"more sequences":   func(o *Options) { o.Parallel = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			if r, err := Check(o); err == nil {
				t.Errorf("no error, but %+v", r)
			}
		})
	}
}

// TestEstimate: what the plan says is what a loaded model then holds: weights,
// keys and values, state and intermediate results, each of them, within 5 %.
func TestEstimate(t *testing.T) {
	const ubatch = 128
	for _, checkpoint := range []tinymodel.Checkpoint{tinymodel.Inkling, tinymodel.Kimi} {
		path, types := checkpoint.Files(t, convert.OutF16).Model, []binding.DType{binding.F16, binding.Q8_0}
		if checkpoint == tinymodel.Kimi {
			types[1] = binding.BF16 // its rotated part is narrower than a block of q8_0
		}
		for _, kv := range types {
			for _, ctx := range []int{256, 512, 1024} {
				t.Run(fmt.Sprintf("%s/%s/%d", checkpoint.Name(), kv, ctx), func(t *testing.T) {
					r, err := Check(Options{Model: path, Devices: onCPU, Context: ctx, Contexts: []int{ctx}, KV: kv, UBatch: ubatch, Memory: machine.Memory{Total: 1 << 40, Available: 1 << 40}})
					if err != nil {
						t.Fatal(err)
					}
					if len(r.Advice) > 0 || len(r.Fallback) > 0 {
						t.Errorf("advice %q, fallback %q where all fits", r.Advice, r.Fallback)
					}
					got := r.Contexts[0]
					want := use(t, path, ctx, ubatch, kv)
					if got.Context != ctx || got.Fits != Fits {
						t.Errorf("%d positions fit: %s", got.Context, got.Fits)
					}
					near(t, "weights", r.Weights[0].Bytes, want.weights)
					near(t, "kv", got.KV, want.KV)
					near(t, "state", got.State, want.State)
					near(t, "compute", got.Compute, want.Compute)
					near(t, "total", got.Total, want.weights+want.KV+want.State+want.Compute)
				})
			}
		}
	}
}

// used is what a model holds at work.
type used struct {
	Row
	weights int64
}

// residentModel names the model for the process that TestResident starts.
const residentModel = "INKLING_DOCTOR_MODEL"

// TestResident: all of it together is what a process grows by, one of its own,
// since in this one earlier tests left memory behind.
func TestResident(t *testing.T) {
	const ctx, ubatch = 2048, 512
	if path := os.Getenv(residentModel); path != "" {
		before := outsideGo()
		full(t, path, ctx, ubatch, binding.F16, func(models.Model, models.Cache, *binding.Backend) {
			fmt.Printf("grown %d\n", outsideGo()-before)
		})
		return
	}
	if machine.Resident() == 0 {
		t.Skip("the system does not say how much memory the process has")
	}
	path := tinymodel.Inkling.Files(t, convert.OutF16).Model
	r, err := Check(Options{Model: path, Devices: onCPU, Contexts: []int{ctx}, KV: binding.F16, UBatch: ubatch})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestResident$")
	cmd.Env = append(os.Environ(), residentModel+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var grown int64
	if _, err := fmt.Sscanf(string(out), "grown %d", &grown); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	want := r.Contexts[0].Total
	t.Logf("estimated %d, grown by %d", want, grown)
	const descriptions = 2 << 20 // of graphs, whose results alone are estimated
	if d := math.Abs(float64(grown - want)); d > 0.05*float64(want)+descriptions {
		t.Errorf("estimated %d bytes, the process grew by %d: off by %.1f %%", want, grown, 100*d/float64(want))
	}
}

// outsideGo is the resident memory that is not Go's.
func outsideGo() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return machine.Resident() - int64(m.Sys-m.HeapReleased)
}

// use loads the model and fills a context, the last row once more as one of an
// answer is, and returns what it holds then.
func use(t *testing.T, path string, ctx, ubatch int, kv binding.DType) (u used) {
	t.Helper()
	full(t, path, ctx, ubatch, kv, func(m models.Model, c models.Cache, be *binding.Backend) {
		u.weights = m.WeightBytes()
		u.State = c.StateBytes()
		u.KV = c.Bytes() - u.State
		u.Compute = m.(interface{ GraphBytes() int64 }).GraphBytes() + be.WorkBytes()
	})
	return u
}

// full is use without what is looked at then.
func full(t *testing.T, path string, ctx, ubatch int, kv binding.DType, look func(models.Model, models.Cache, *binding.Backend)) {
	t.Helper()
	f, err := models.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m, err := models.Open(f, models.Params{Backend: be, NoMmap: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c, err := m.NewCache(1, ctx, kv)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	logits := make([]float32, m.Config().Vocab)
	step := func(n int) {
		b := models.Batch{Tokens: make([]int32, n), Outputs: []int32{int32(n - 1)}}
		if err := m.Forward(c, []models.Batch{b}, models.Outputs{Logits: logits}); err != nil {
			t.Fatal(err)
		}
	}
	for range ctx / ubatch {
		step(ubatch)
	}
	if err := c.Truncate(0, ctx-1); err != nil {
		t.Fatal(err)
	}
	step(1)
	look(m, c, be)
}

func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	t.Logf("%s: estimated %d, used %d", what, got, want)
	if math.Abs(float64(got-want)) > 0.05*float64(want) {
		t.Errorf("%s: estimated %d bytes, used %d", what, got, want)
	}
}
