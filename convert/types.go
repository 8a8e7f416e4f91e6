package convert

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// types settles the types of the tensors of one file.
type types struct {
	o      OutType
	recipe Recipe // of the language model; nil for the towers
	own    bool   // the recipe is the user's
}

// typesFor returns the types of a file's tensors as the options want them.
func typesFor(f File, o Options) types {
	switch {
	case f.Kind == MMProj:
		return types{o: o.OutType.towerType()}
	case o.Recipe != nil:
		return types{o: OutAuto, recipe: o.Recipe, own: true}
	}
	return types{o: o.OutType, recipe: RecipeFor(o.OutType, layers(f))}
}

// layers returns how many layers the tensors of a file are of.
func layers(f File) int {
	most := -1
	for _, t := range f.Tensors {
		var il int
		if n, err := fmt.Sscanf(t.Name, "blk.%d.", &il); n == 1 && err == nil {
			most = max(most, il)
		}
	}
	return most + 1
}

// settled is the type of a tensor.
type settled struct {
	t    gguf.Type
	fell bool // it is not the one asked for, since that does not fit the rows
}

// of returns the type of a tensor.
func (s types) of(t Tensor) (settled, error) {
	if t.keepsF32() {
		return settled{t: gguf.F32}, nil
	}
	rule := Rule{Auto: s.o == OutAuto}
	switch {
	case s.recipe != nil:
		var ok bool
		if rule, ok = s.recipe.find(t.Name); !ok {
			return settled{}, fmt.Errorf("no rule of the recipe is for tensor %s; %q at the end is for all others", t.Name, ".* = q8_0")
		}
	case !rule.Auto:
		var err error
		if rule.Type, err = gguf.ParseType(string(s.o)); err != nil {
			return settled{}, err
		}
	}
	want := rule.Type
	if rule.Auto {
		want = t.autoType()
	}
	if s.recipe == nil && want != gguf.F32 && want != gguf.F16 && want != gguf.BF16 {
		want = gguf.Q8_0 // a tower that came quantised
	}
	got := fitting(want, t.Dims[0])
	return settled{got, got != want}, nil
}

// label returns what the file is called after and its general.file_type, given how
// many elements of each type follow the output type: the output type, or where it
// leaves the choice, the type that most elements have.
func (s types) label(share map[gguf.Type]int64) (string, uint32) {
	if s.o != OutAuto {
		m, mixed := mixes[s.o]
		if !mixed {
			m.base, _ = gguf.ParseType(string(s.o)) // as in of
		}
		return strings.ToUpper(string(s.o)), fileTypes[m.base]
	}
	most := gguf.F32
	for t, n := range share {
		if n > share[most] || n == share[most] && t > most {
			most = t
		}
	}
	return strings.ToUpper(most.String()), fileTypes[most]
}
