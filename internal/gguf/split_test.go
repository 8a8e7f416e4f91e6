package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// part is what one file of a split model holds.
type part struct {
	no, count, tensors int
	extra              *raw // a further key, already encoded
	names              []string
}

// bytes builds the file: tensor k of the whole holds k in all of its 8 bytes.
func (p part) bytes() []byte {
	n := uint64(3)
	if p.extra != nil {
		n++
	}
	r := file(uint64(len(p.names)), n)
	// Types as gguf-split writes them.
	r.str("split.no").u32(2).u8(uint8(p.no)).u8(0)
	r.str("split.count").u32(2).u8(uint8(p.count)).u8(0)
	r.str("split.tensors.count").u32(5).u32(uint32(p.tensors))
	if p.extra != nil {
		r.b = append(r.b, p.extra.b...)
	}
	for i, name := range p.names {
		r.tensor(name, 24, uint64(32*i), 8)
	}
	r.align(32)
	for _, name := range p.names {
		r.text(strings.Repeat(name[len(name)-1:], 8)).align(32)
	}
	return r.b
}

func writeParts(t *testing.T, parts map[string]part) string {
	t.Helper()
	dir := t.TempDir()
	for name, p := range parts {
		if err := os.WriteFile(filepath.Join(dir, name), p.bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// threeParts is a model in order, to be changed by the tests.
func threeParts() map[string]part {
	return map[string]part{
		"m-00001-of-00003.gguf": {0, 3, 4, new(raw).str("general.name").u32(8).str("split model"), []string{"t.0", "t.1"}},
		"m-00002-of-00003.gguf": {1, 3, 4, nil, []string{"t.2"}},
		"m-00003-of-00003.gguf": {2, 3, 4, new(raw).str("other").u32(4).u32(1), []string{"t.3"}},
	}
}

func TestOpenSplit(t *testing.T) {
	dir := writeParts(t, threeParts())
	for no := 1; no <= 3; no++ {
		t.Run(fmt.Sprintf("from part %d", no), func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", no))
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Path() != path {
				t.Errorf("Path %q, want %q", f.Path(), path)
			}
			if n := len(f.Parts()); n != 3 {
				t.Errorf("%d parts, want 3", n)
			}
			if name, err := f.Str("general.name"); err != nil || name != "split model" {
				t.Errorf("general.name: %q, %v", name, err)
			}
			if _, ok := f.Value("other"); ok {
				t.Error("a key of part 3 is among the model's")
			}
			type place struct {
				Name string
				Part int
				Data string
			}
			var got []place
			for _, ti := range f.Tensors() {
				got = append(got, place{ti.Name, ti.Part, string(f.Bytes(ti))})
			}
			want := []place{{"t.0", 0, "00000000"}, {"t.1", 0, "11111111"}, {"t.2", 1, "22222222"}, {"t.3", 2, "33333333"}}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("tensors (-want +got):\n%s", d)
			}
		})
	}
}

func TestOpenSplitRefuses(t *testing.T) {
	const first, second, third = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"
	tests := []struct {
		name   string
		change func(map[string]part)
		open   string
		want   []string // all in the error
		is     error
	}{
		{
			name:   "a part is absent",
			change: func(m map[string]part) { delete(m, second) },
			want:   []string{"part 2 of 3", second},
			is:     fs.ErrNotExist,
		},
		{
			name:   "the first part is absent",
			change: func(m map[string]part) { delete(m, first) },
			open:   third,
			want:   []string{"part 1 of 3", first},
			is:     fs.ErrNotExist,
		},
		{
			name:   "the file was renamed",
			change: func(m map[string]part) { m["model.gguf"] = m[first] },
			open:   "model.gguf",
			want:   []string{"model.gguf", "must end in -00001-of-00003.gguf"},
		},
		{
			name:   "the name has another number",
			change: func(m map[string]part) { m[second] = m[first] },
			open:   second,
			want:   []string{second, "part 1 of 3", "must be " + first},
		},
		{
			name:   "another part has the wrong number",
			change: func(m map[string]part) { m[third] = m[second] },
			want:   []string{"part 3 of 3", third, "must be " + second},
		},
		{
			name: "another part has another count",
			change: func(m map[string]part) {
				p := m[second]
				p.count = 1
				m[second] = p
			},
			want: []string{second, `"split.count" is absent or not 3`},
		},
		{
			name: "number beyond the count",
			change: func(m map[string]part) {
				p := m[first]
				p.no = 3
				m[first] = p
			},
			want: []string{first, `"split.no" is uint16 3, want an integer from 0 to 2`},
		},
		{
			name: "number of tensors",
			change: func(m map[string]part) {
				p := m[third]
				p.tensors = 5
				m[third] = p
			},
			want: []string{third, `"split.tensors.count" is 5, the parts have 4 tensors`},
		},
		{
			name: "a tensor in two parts",
			change: func(m map[string]part) {
				p := m[third]
				p.names = []string{"t.1"}
				m[third] = p
			},
			want: []string{third, `tensor "t.1" is also in part 1`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parts := threeParts()
			tt.change(parts)
			if tt.open == "" {
				tt.open = first
			}
			f, err := Open(filepath.Join(writeParts(t, parts), tt.open))
			if err == nil {
				f.Close()
				t.Fatal("opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not hold %q", err, want)
				}
			}
			var format *FormatError
			if tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil && !errors.As(err, &format) {
				t.Errorf("error %q is of the wrong kind", err)
			}
		})
	}
}

func TestOpenSplitTypes(t *testing.T) {
	for name, tt := range map[string]struct {
		pairs *raw
		n     uint64
		want  string // "" opens
	}{
		"count of 1":          {new(raw).str("split.count").u32(2).u8(1).u8(0), 1, ""},
		"count of 0":          {new(raw).str("split.count").u32(2).u8(0).u8(0), 1, ""},
		"count is a string":   {new(raw).str("split.count").u32(8).str("3"), 1, `"split.count" is string`},
		"count is negative":   {new(raw).str("split.count").u32(5).u32(1<<32 - 1), 1, `"split.count" is int32 -1`},
		"count beyond uint16": {new(raw).str("split.count").u32(4).u32(1 << 16), 1, `"split.count" is uint32 65536`},
		"number is absent":    {new(raw).str("split.count").u32(4).u32(2), 1, `"split.no" is absent`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := openBytes(t, append(file(0, tt.n).b, tt.pairs.b...))
			if err == nil {
				f.Close()
			}
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}
