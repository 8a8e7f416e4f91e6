package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/convert/quantin"
)

// methods are the values of quant_method that checkpoints which are read have.
var methods = []string{"modelopt", "compressed-tensors", "fp8"}

// quantisation reads what the config files say about quantised weights. Which tensors
// are quantised, and how, is known by their names; an unknown method is refused.
func (s *Source) quantisation() (quantin.Config, error) {
	var c quantin.Config
	if q := s.quantObject("quantization_config"); q != nil {
		switch {
		case q.Has("quant_method"):
			s.method(q, &c)
		case q.Has("group_size"):
			affine(q, &c)
		default:
			q.Unsupportedf("%s is missing", q.Name("quant_method"))
		}
	}
	if q := s.quantObject("quantization"); q != nil {
		affine(q, &c)
	}
	if err := s.Config.Err(); err != nil {
		return c, err
	}
	f, err := s.Optional("hf_quant_config.json")
	if f == nil {
		return c, err
	}
	q := f.Object("quantization")
	if q == nil {
		q = f
	}
	if algo := q.StrOr("NVFP4", "quant_algo"); !slices.Contains([]string{"NVFP4", "FP8", "FP8_BLOCK", "FP8_PB_WO", "MIXED_PRECISION"}, algo) {
		q.Unsupportedf("%s is %q, want NVFP4 or FP8", q.Name("quant_algo"), algo)
	}
	return c, f.Err()
}

// quantObject returns an object of config.json or of its text config.
func (s *Source) quantObject(name string) *Fields {
	if q := s.Config.Object(name); q != nil {
		return q
	}
	if s.Config.IsObject("text_config") {
		return s.Config.Object("text_config").Object(name)
	}
	return nil
}

// method reads the settings of a method.
func (s *Source) method(q *Fields, c *quantin.Config) {
	if m := q.StrOr("", "quant_method"); !slices.Contains(methods, m) {
		q.Unsupportedf("quantisation method %q, want one of: %s, or MLX's", m, strings.Join(methods, ", "))
		return
	}
	if q.Has("weight_block_size") {
		setBlock(q, "weight_block_size", c)
	}
	groups := q.Object("config_groups")
	if groups == nil {
		return
	}
	for _, name := range groups.Members() {
		group := groups.Object(name)
		w := group.Object("weights")
		if w == nil {
			continue
		}
		if !w.BoolOr(true, "symmetric") {
			w.Unsupportedf("%s is false, want true", w.Name("symmetric"))
		}
		if w.Has("block_structure") {
			setBlock(w, "block_structure", c)
		}
	}
}

// setBlock reads the rows and columns of an FP8 block.
func setBlock(q *Fields, name string, c *quantin.Config) {
	v := q.Ints(name)
	if len(v) != 2 || v[0] <= 0 || v[1] <= 0 {
		q.Failf("%s is %v, want rows and columns", q.Name(name), v)
		return
	}
	c.Block = [2]int64{v[0], v[1]}
}

// affine reads MLX's settings: the default and those of single modules, which are
// objects under their path.
func affine(q *Fields, c *quantin.Config) {
	read := func(f *Fields) quantin.Affined {
		if mode := f.StrOr("affine", "mode"); mode != "affine" {
			f.Unsupportedf("%s is %q, want affine", f.Name("mode"), mode)
		}
		return quantin.Affined{Bits: f.IntOr(c.Affine.Bits, "bits"), Group: f.IntOr(c.Affine.Group, "group_size")}
	}
	c.Affine = quantin.Affined{Bits: 4, Group: 64}
	c.Affine = read(q)
	c.Paths = make(map[string]quantin.Affined)
	for _, name := range q.Members() {
		if q.IsObject(name) {
			c.Paths[name] = read(q.Object(name))
		}
	}
}

// group puts codes and scales together.
func (s *Source) group(c quantin.Config) error {
	set, err := quantin.Open(s.Tensors, c)
	var bad *quantin.Error
	if errors.As(err, &bad) {
		return &UnsupportedError{s.Dir, bad.Error()}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	s.Weights = set
	for _, f := range []quantin.Format{quantin.NVFP4, quantin.FP8, quantin.Affine, quantin.INT4} {
		if n := set.Formats()[f]; n > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%s quantised as %s", plural(int64(n), "tensor"), f))
		}
	}
	return nil
}
