package gguf

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withPairs writes a file of keys only and opens it.
func withPairs(t *testing.T, pairs ...pairOf) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kv.gguf")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, p := range pairs {
		if err := w.Set(p.key, p.val); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// getters has each typed getter under its name.
func getters(f *File) map[string]func(key string) (any, error) {
	wrap := func(v any, err error) (any, error) { return v, err }
	return map[string]func(string) (any, error){
		"Uint":   func(k string) (any, error) { return wrap(f.Uint(k)) },
		"Int":    func(k string) (any, error) { return wrap(f.Int(k)) },
		"Float":  func(k string) (any, error) { return wrap(f.Float(k)) },
		"Bool":   func(k string) (any, error) { return wrap(f.Bool(k)) },
		"Str":    func(k string) (any, error) { return wrap(f.Str(k)) },
		"Ints":   func(k string) (any, error) { return wrap(f.Ints(k)) },
		"Floats": func(k string) (any, error) { return wrap(f.Floats(k)) },
		"Bools":  func(k string) (any, error) { return wrap(f.Bools(k)) },
		"Strs":   func(k string) (any, error) { return wrap(f.Strs(k)) },
	}
}

func TestGetters(t *testing.T) {
	type results map[string]any // by getter; all others refuse
	tests := []struct {
		name string
		val  any
		want results
	}{
		{"uint8", uint8(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"int8", int8(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"uint16", uint16(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"int16", int16(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"uint32", uint32(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"int32", int32(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"uint64", uint64(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"int64", int64(7), results{"Uint": uint64(7), "Int": int64(7)}},
		{"negative", int32(-7), results{"Int": int64(-7)}},
		{"beyond int64", uint64(math.MaxUint64), results{"Uint": uint64(math.MaxUint64)}},
		{"float32", float32(0.1), results{"Float": float64(float32(0.1))}},
		{"float64", 0.1, results{"Float": 0.1}},
		{"bool", true, results{"Bool": true}},
		{"string", "s", results{"Str": "s"}},
		{"uint8s", []uint8{1, 255}, results{"Ints": []int64{1, 255}}},
		{"int8s", []int8{1, -1}, results{"Ints": []int64{1, -1}}},
		{"uint16s", []uint16{1, 65535}, results{"Ints": []int64{1, 65535}}},
		{"int16s", []int16{1, -1}, results{"Ints": []int64{1, -1}}},
		{"uint32s", []uint32{1, math.MaxUint32}, results{"Ints": []int64{1, math.MaxUint32}}},
		{"int32s", []int32{1, -1}, results{"Ints": []int64{1, -1}}},
		{"uint64s", []uint64{1, math.MaxInt64}, results{"Ints": []int64{1, math.MaxInt64}}},
		{"uint64s beyond int64", []uint64{1, math.MaxInt64 + 1}, results{}},
		{"int64s", []int64{1, math.MinInt64}, results{"Ints": []int64{1, math.MinInt64}}},
		{"no integers", []int32{}, results{"Ints": []int64{}}},
		{"float32s", []float32{1, 0.1}, results{"Floats": []float32{1, 0.1}}},
		{"float64s", []float64{1, 0.1}, results{"Floats": []float32{1, 0.1}}},
		{"bools", []bool{true, false}, results{"Bools": []bool{true, false}}},
		{"strings", []string{"a", ""}, results{"Strs": []string{"a", ""}}},
		{"no strings", []string{}, results{"Strs": []string{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := withPairs(t, pairOf{"the.key", tt.val})
			for name, get := range getters(f) {
				got, err := get("the.key")
				want, ok := tt.want[name]
				if !ok {
					checkGetterError[*FormatError](t, name, err, f.Path(), "the.key")
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", name, d)
				}
			}
		})
	}
}

func checkGetterError[E error](t *testing.T, getter string, err error, words ...string) {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v, want %T", getter, err, e)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %q does not name %q", getter, err, w)
		}
	}
}

func TestGetterErrorSaysWhatItFound(t *testing.T) {
	f := withPairs(t, pairOf{"n", int32(-3)}, pairOf{"s", []string{"x"}})
	_, err := f.Uint("n")
	// Magic, version, two counts, key "n", type: 4+4+16+9+4.
	want := fmt.Sprintf(`%s: key "n": gguf: offset 37: is int32 -3, want an unsigned integer`, f.Path())
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err = f.Str("s"); err == nil || !strings.HasSuffix(err.Error(), "is array of string, want a string") {
		t.Errorf("error %v", err)
	}
}

func TestGettersAbsent(t *testing.T) {
	f := withPairs(t)
	for name, get := range getters(f) {
		_, err := get("the.key")
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "kv.gguf") || !strings.Contains(err.Error(), "the.key") {
			t.Errorf("%s: error %v, want ErrMissing with file and key", name, err)
		}
	}
}

func TestGettersOr(t *testing.T) {
	f := withPairs(t, pairOf{"u", uint8(1)}, pairOf{"f", float32(2)}, pairOf{"b", true}, pairOf{"s", "x"})
	type row struct {
		name      string
		got, want any
		err       error
	}
	one := func(name string, want any) func(any, error) row {
		return func(got any, err error) row { return row{name, got, want, err} }
	}
	u, x, b, s := f.UintOr, f.FloatOr, f.BoolOr, f.StrOr
	call := func(v any, err error) (any, error) { return v, err }
	for _, r := range []row{
		one("UintOr present", uint64(1))(call(u("u", 9))),
		one("UintOr absent", uint64(9))(call(u("no", 9))),
		one("FloatOr present", 2.0)(call(x("f", 9))),
		one("FloatOr absent", 9.0)(call(x("no", 9))),
		one("BoolOr present", true)(call(b("b", false))),
		one("BoolOr absent", true)(call(b("no", true))),
		one("StrOr present", "x")(call(s("s", "def"))),
		one("StrOr absent", "def")(call(s("no", "def"))),
	} {
		if r.err != nil || r.got != r.want {
			t.Errorf("%s: %v, %v, want %v", r.name, r.got, r.err, r.want)
		}
	}
	_, err := u("s", 9)
	checkGetterError[*FormatError](t, "UintOr", err, "s")
	_, err = x("u", 9)
	checkGetterError[*FormatError](t, "FloatOr", err, "u")
	_, err = b("u", true)
	checkGetterError[*FormatError](t, "BoolOr", err, "u")
	_, err = s("u", "def")
	checkGetterError[*FormatError](t, "StrOr", err, "u")
}
