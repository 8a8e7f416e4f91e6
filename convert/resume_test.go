package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/internal/gguf"
)

// random is a checkpoint of n tensors with weights that differ.
func random(n int) *checkpointtest.Checkpoint {
	c := &checkpointtest.Checkpoint{Config: map[string]any{"model_type": "copies"}}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		x := c.Add(fmt.Sprintf("t%d.weight", i), 64, 256)
		x.Data = x.Data[:0]
		for range 64 * 256 {
			x.Data = append(x.Data, checkpointtest.BF16(float32(r.IntN(255)-127)/128)...)
		}
	}
	return c
}

// TestResume interrupts a run after some tensors and goes on with it: the outcome is
// that of a run in one piece, and what was there is kept unless it was damaged.
func TestResume(t *testing.T) {
	dir := random(8).Write(t)
	whole := t.TempDir()
	o := Options{Dir: dir, OutDir: whole, Name: "m", OutType: OutQ4_K_M, Workers: 1}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(whole, "m-Q4_K_M.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	const tensor = 64 * 256 / 256 * 144
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, partial, journal string)
		kept   int64 // tensors
		err    error
	}{
		{"as it was", func(*testing.T, string, string) {}, 4, nil},
		{"damaged output", func(t *testing.T, partial, _ string) {
			f, err := os.OpenFile(partial, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			size, err := f.Seek(0, 2)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{1, 2, 3}, size-8*tensor+100); err != nil { // in the first tensor
				t.Fatal(err)
			}
		}, 3, nil},
		{"no output", func(t *testing.T, partial, _ string) {
			if err := os.Remove(partial); err != nil {
				t.Fatal(err)
			}
		}, 0, nil},
		{"journal cut off", func(t *testing.T, _, journal string) {
			data, err := os.ReadFile(journal)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(journal, data[:len(data)-5], 0o666); err != nil {
				t.Fatal(err)
			}
		}, 3, nil},
		{"no journal", func(t *testing.T, _, journal string) {
			if err := os.Remove(journal); err != nil {
				t.Fatal(err)
			}
		}, 0, nil},
		{"another run", func(t *testing.T, _, journal string) {
			data, err := os.ReadFile(journal)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.Replace(data, []byte(`"run":"`), []byte(`"run":"0`), 1)
			if err := os.WriteFile(journal, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}, 0, ErrOtherRun},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := o
			o.OutDir, o.Keep = t.TempDir(), true
			ctx, cancel := context.WithCancel(context.Background())
			o.Progress = func(p Progress) {
				if p.Done == 4*tensor {
					cancel()
				}
			}
			if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: error %v", err)
			}
			left := []string{"m-Q4_K_M.gguf.partial", "m-Q4_K_M.journal.partial", "mmproj-m-F32.gguf.partial"}
			if diff := cmp.Diff(left, filesIn(t, o.OutDir)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			tc.damage(t, filepath.Join(o.OutDir, left[0]), filepath.Join(o.OutDir, left[1]))
			o.Resume, o.Progress, o.Workers = true, nil, 3
			report, err := Run(context.Background(), o)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if report.Kept != tc.kept*tensor {
				t.Errorf("%d bytes kept, want %d tensors of %d", report.Kept, tc.kept, tensor)
			}
			got, err := os.ReadFile(filepath.Join(o.OutDir, "m-Q4_K_M.gguf"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("another file than in one piece (%v)", err)
			}
			for _, name := range filesIn(t, o.OutDir) {
				if strings.HasSuffix(name, ".partial") {
					t.Errorf("left behind: %s", name)
				}
			}
		})
	}
}

// TestSplit writes a model in parts and reads it as one.
func TestSplit(t *testing.T) {
	dir := random(8).Write(t)
	one, parts := t.TempDir(), t.TempDir()
	o := Options{Dir: dir, OutDir: one, Name: "m", Only: []Kind{Text}}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	const tensor = 64 * 256 * 2
	o.OutDir, o.SplitMax = parts, 3*tensor
	report, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"m-BF16-00001-of-00003.gguf", "m-BF16-00002-of-00003.gguf", "m-BF16-00003-of-00003.gguf"}
	if diff := cmp.Diff(want, filesIn(t, parts)); diff != "" || len(report.Files[0].More) != 2 {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	a, err := gguf.Open(filepath.Join(one, "m-BF16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := gguf.Open(report.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, info := range a.Tensors() {
		other, ok := b.Tensor(info.Name)
		if !ok || !bytes.Equal(a.Bytes(info), b.Bytes(other)) {
			t.Errorf("%s differs", info.Name)
		}
	}
	for _, key := range a.Keys() {
		x, _ := a.Value(key)
		y, _ := b.Value(key)
		if !cmp.Equal(x, y) {
			t.Errorf("key %s is %v, in parts %v", key, x, y)
		}
	}
}

// TestVerify damages outputs in each way that counts.
func TestVerify(t *testing.T) {
	dir := random(3).Write(t)
	for _, out := range []OutType{OutBF16, OutQ8_0, OutQ2_K, OutF32} {
		o := Options{Dir: dir, OutDir: t.TempDir(), Name: "m", OutType: out, Only: []Kind{Text}, Verify: true}
		report, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Verified) != 3 {
			t.Fatalf("%s: %d tensors verified, want 3", out, len(report.Verified))
		}
		for _, v := range report.Verified {
			exact := out == OutBF16
			if v.Exact != exact || v.Values != 64*256 || (v.RelativeError > 0) == (exact || out == OutF32) {
				t.Errorf("%s: %+v", out, v)
			}
		}
		f, err := os.OpenFile(report.Files[0].Path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := report.Files[0].Types[len(report.Files[0].Types)-1]
		if _, err := f.Seek(-last.Bytes/int64(last.Tensors), 2); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte{0x42}, int(last.Bytes)/last.Tensors)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var bad *VerifyError
		if _, err := Run(context.Background(), o); !errors.As(err, &bad) || bad.Count != 1 || bad.First.Tensor != "t2.weight" {
			t.Errorf("%s: error %v, want one about t2.weight", out, err)
		}
	}
}
