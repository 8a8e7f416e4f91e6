package testutil

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTestdataFromBelow(t *testing.T) {
	want := Testdata(t, "inkling-tiny-random", "original", "config.json")
	t.Chdir(t.TempDir()) // outside of the module there is nothing to find
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if root, err := moduleRoot(dir); err == nil {
		t.Errorf("module root of %s is %s, want an error", dir, root)
	}

	root := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(want))))
	got, err := moduleRoot(filepath.Join(root, "models", "inkling", "deep"))
	if err != nil {
		t.Fatal(err)
	}
	if got != root {
		t.Errorf("module root %s, want %s", got, root)
	}
}

func TestUniform(t *testing.T) {
	r := Rand(t)
	first, second := Uniform(r, 10000, -2, 3), Uniform(r, 10000, -2, 3)
	if lo, hi := slices.Min(first), slices.Max(first); lo < -2 || hi >= 3 || lo > -1.9 || hi < 2.9 {
		t.Errorf("values from %g to %g, want them to fill [-2, 3)", lo, hi)
	}
	if slices.Equal(first, second) {
		t.Error("two draws from one generator are equal")
	}
	if again := Uniform(Rand(t), 10000, -2, 3); !slices.Equal(first, again) {
		t.Error("the same test draws other values the second time")
	}
	t.Run("other name", func(t *testing.T) {
		if other := Uniform(Rand(t), 10000, -2, 3); slices.Equal(first, other) {
			t.Error("another test draws the same values")
		}
	})
}

// TestGolden reads arrays of both kinds and checks them against what the JSON
// beside them, written by another program, says about them.
func TestGolden(t *testing.T) {
	var facts struct {
		Arrays []struct {
			Name  string
			Shape []int64
			Dtype string
		}
	}
	GoldenJSON(t, "inkling-tiny-random", "images", &facts)
	if len(facts.Arrays) == 0 {
		t.Fatal("images.json lists no arrays")
	}
	g := OpenGolden(t, "inkling-tiny-random", "images")
	if len(g.Names()) != len(facts.Arrays) {
		t.Errorf("%d arrays, want %d", len(g.Names()), len(facts.Arrays))
	}
	for _, a := range facts.Arrays {
		if !g.Has(a.Name) {
			t.Errorf("no array %s", a.Name)
			continue
		}
		if diff := cmp.Diff(a.Shape, g.Shape(a.Name)); diff != "" {
			t.Errorf("shape of %s (-want +got):\n%s", a.Name, diff)
		}
		n := 1
		for _, d := range a.Shape {
			n *= int(d)
		}
		got := 0
		if a.Dtype == "float32" {
			got = len(g.Floats(a.Name))
		} else {
			got = len(g.Ints(a.Name))
		}
		if got != n {
			t.Errorf("%s has %d values, want %d", a.Name, got, n)
		}
	}
	if g.Has("no such array") {
		t.Error(`has "no such array"`)
	}
	// The image of 100 x 80 pixels makes 3 x 3 tiles of 40 (the last column is padding).
	if diff := cmp.Diff([]int64{9}, g.Ints("image0.num_patches")); diff != "" {
		t.Errorf("image0.num_patches (-want +got):\n%s", diff)
	}
}
