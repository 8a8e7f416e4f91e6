package convert

import (
	"maps"
	"slices"
)

// MustBe refuses a checkpoint in which a switch of the architecture is set in another
// way than in all released models: nothing is known of that variant. Absent is as
// wanted.
func (f *Fields) MustBe(name string, want bool) {
	if got := f.BoolOr(want, name); got != want {
		f.Unsupportedf("%s is %v, want %v", f.Name(name), got, want)
	}
}

// MustBeStr is [Fields.MustBe] for a choice.
func (f *Fields) MustBeStr(name, want string) {
	if got := f.StrOr(want, name); got != want {
		f.Unsupportedf("%s is %q, want %q", f.Name(name), got, want)
	}
}

// MustBeNum is [Fields.MustBe] for a number.
func (f *Fields) MustBeNum(name string, want float64) {
	if got := f.FloatOr(want, name); got != want {
		f.Unsupportedf("%s is %v, want %v", f.Name(name), got, want)
	}
}

// Positive refuses 0 for settings, by their names, that count or measure something.
func (f *Fields) Positive(values map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == 0 {
			f.Failf("%s is 0, want at least 1", f.Name(name))
		}
	}
}

// AtMost refuses a number that is too large.
func (f *Fields) AtMost(name string, v, limit int64) {
	if v > limit {
		f.Failf("%s is %d, want at most %d", f.Name(name), v, limit)
	}
}

// TokenIDs reads a setting that is one token id or a list of them; nil if it is absent.
func (f *Fields) TokenIDs(name string) []int64 {
	switch {
	case !f.Has(name):
		return nil
	case f.IsList(name):
		return f.Ints(name)
	}
	return []int64{f.Int(name)}
}

// RGB reads three numbers, one per colour, into dst, if they are there.
func (f *Fields) RGB(name string, dst *[3]float32) {
	if !f.Has(name) {
		return
	}
	v := f.Floats(name)
	if len(v) != len(dst) {
		f.Failf("%s has %d numbers, want %d", f.Name(name), len(v), len(dst))
		return
	}
	for i := range dst {
		dst[i] = float32(v[i])
	}
}
