package quantin

import (
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// quantised adds the weights whose codes are the tensor called name; it does
// nothing for any other tensor.
func (o *opener) quantised(name string) error {
	x, _ := o.ckpt.Tensor(name)
	if x.Elems() == 0 {
		return nil
	}
	base, packed := strings.CutSuffix(name, ".weight_packed")
	switch {
	case packed && x.DType == safetensors.U8:
		return o.compressedNVFP4(x, base)
	case packed:
		return o.int4(x, base)
	case x.DType == safetensors.U8:
		return o.modelOptNVFP4(x)
	case x.DType == safetensors.F8_E4M3:
		return o.fp8(x)
	case x.DType == safetensors.U32 && strings.HasSuffix(name, ".weight"):
		return o.affine(x, strings.TrimSuffix(name, ".weight"))
	}
	return nil
}

// modelOptNVFP4 takes bytes that have an E4M3 scale tensor beside them. Other bytes
// are not weights.
func (o *opener) modelOptNVFP4(x safetensors.Tensor) error {
	scale, ok := o.companion(x.Name+".scale", x.Name+"_scale")
	if !ok || scale.DType != safetensors.F8_E4M3 {
		return nil
	}
	global, ok := o.companion(x.Name+".scale2", x.Name+"_scale_2")
	if !ok {
		return errorf(x.Name, "no tensor %s.scale2 or %s_scale_2", x.Name, x.Name)
	}
	o.drop(x.Name+".input_amax", x.Name+".original_shape", strings.TrimSuffix(x.Name, ".weight")+".input_scale")
	return o.nvfp4(x.Name, x, scale, global, false)
}

// compressedNVFP4 takes the three tensors of compressed-tensors. The suffix stands
// after the name of a linear layer, or after the whole name of a stack of experts.
func (o *opener) compressedNVFP4(x safetensors.Tensor, base string) error {
	scale, ok := o.companion(base + ".weight_scale")
	if !ok {
		return errorf(x.Name, "no tensor %s.weight_scale", base)
	}
	global, ok := o.companion(base + ".weight_global_scale")
	if !ok {
		return errorf(x.Name, "no tensor %s.weight_global_scale", base)
	}
	o.drop(base+".input_global_scale", base+".weight_shape")
	return o.nvfp4(weightName(base), x, scale, global, true)
}

// weightName returns the name that the weights of base have when they are not packed.
func weightName(base string) string {
	if strings.HasSuffix(base, "_weight") {
		return base
	}
	return base + ".weight"
}

// nvfp4 adds weights of E2M1 codes, an E4M3 scale per 16 of them, and a scale for
// each matrix of the stack or for all of it. inverse: that scale is a divisor.
func (o *opener) nvfp4(name string, codes, scale, global safetensors.Tensor, inverse bool) error {
	if len(codes.Shape) < 2 {
		return errorf(codes.Name, "shape %v, want a matrix or a stack", codes.Shape)
	}
	shape := widened(codes.Shape, 2, 1)
	if cols := shape[len(shape)-1]; cols%nvfp4Group != 0 {
		return errorf(codes.Name, "rows of %d weights, want a multiple of %d", cols, nvfp4Group)
	}
	if want := widened(shape, 1, nvfp4Group); scale.DType != safetensors.F8_E4M3 || !slices.Equal(scale.Shape, want) {
		return errorf(scale.Name, "is %s %v, want F8_E4M3 %v", scale.DType, scale.Shape, want)
	}
	slabs := elems(shape[:len(shape)-2])
	if n := global.Elems(); n != 1 && n != slabs {
		return errorf(global.Name, "%d scales for %d matrices", n, slabs)
	}
	factors, err := o.floats(global, maxSlabs)
	if err != nil {
		return err
	}
	factors = slices.Clone(factors)
	for i, f := range factors {
		if !(f > 0 && f <= maxFinite) {
			return errorf(global.Name, "scale %d is %v, want a positive number", i, f)
		}
		if inverse {
			factors[i] = 1 / f
		}
	}
	w := &Weights{Name: name, Shape: shape, Format: NVFP4, Parts: []safetensors.Tensor{codes, scale, global}, Bits: 4}
	w.codec = &nvfp4{
		codes: o.ckpt.Bytes(codes), scales: o.ckpt.Bytes(scale), factors: factors,
		cols: w.Cols(), slab: w.Rows() / int64(len(factors)),
	}
	o.add(w)
	return nil
}

// fp8 adds weights in E4M3 with a factor for each block of the matrix. The block
// follows from the shapes where a scale is for a row or for a whole matrix; a block
// inside of a row must be in the config.
func (o *opener) fp8(x safetensors.Tensor) error {
	if strings.HasSuffix(x.Name, "scale") { // of NVFP4
		return nil
	}
	scale, ok := o.companion(x.Name+"_scale_inv", x.Name+".scale_inv", x.Name+"_scale", x.Name+".weight_scale", x.Name+".weight_scale_inv")
	if !ok {
		return errorf(x.Name, "is F8_E4M3 without a tensor %s_scale_inv or %s_scale", x.Name, x.Name)
	}
	if len(x.Shape) < 2 {
		return errorf(x.Name, "shape %v, want a matrix or a stack", x.Shape)
	}
	n := len(x.Shape)
	rows, cols := x.Shape[n-2], x.Shape[n-1]
	slabs := elems(x.Shape[:n-2])
	block := [2]int64{rows, cols}
	switch {
	case scale.Elems() == 1:
		block[0] = rows * slabs // one for all
		slabs, rows = 1, rows*slabs
	case slices.Equal(squeeze(scale.Shape), squeeze(x.Shape[:n-2])): // one for each matrix
	case slices.Equal(squeeze(scale.Shape), squeeze(x.Shape[:n-1])): // one for each row
		block[0] = 1
	default:
		if block = o.config.Block; block[0] <= 0 || block[1] <= 0 {
			return errorf(x.Name, "scales %v for weights %v, and config.json has no weight_block_size", scale.Shape, x.Shape)
		}
	}
	down, across := ceil(rows, block[0]), ceil(cols, block[1])
	if scale.Elems() != slabs*down*across {
		return errorf(scale.Name, "shape %v, want %d scales for blocks of %d by %d", scale.Shape, slabs*down*across, block[0], block[1])
	}
	read := scalars(scale.DType)
	if read == nil {
		return errorf(scale.Name, "is %s, want F16, BF16 or F32", scale.DType)
	}
	o.drop(strings.TrimSuffix(x.Name, ".weight") + ".input_scale")
	w := &Weights{Name: x.Name, Shape: x.Shape, Format: FP8, Parts: []safetensors.Tensor{x, scale}, Bits: 8}
	w.codec = &fp8{
		codes: o.ckpt.Bytes(x), scales: o.ckpt.Bytes(scale), read: read, size: int64(scale.DType.Bits() / 8),
		rows: rows, cols: cols, block: block, down: down, across: across,
	}
	o.add(w)
	return nil
}

// affine adds the weights of an MLX module: scale·code + bias.
func (o *opener) affine(x safetensors.Tensor, path string) error {
	scale, ok := o.companion(path + ".scales")
	if !ok {
		return errorf(x.Name, "is U32 without a tensor %s.scales", path)
	}
	bias, ok := o.companion(path + ".biases")
	if !ok {
		return errorf(x.Name, "no tensor %s.biases: MLX's affine mode is the one that is read", path)
	}
	if len(x.Shape) < 2 || len(scale.Shape) != len(x.Shape) || !slices.Equal(scale.Shape, bias.Shape) || scale.DType != bias.DType {
		return errorf(x.Name, "codes %v, scales %s %v, biases %s %v do not fit together", x.Shape, scale.DType, scale.Shape, bias.DType, bias.Shape)
	}
	set := o.config.Affine
	if own, ok := o.config.Paths[path]; ok {
		set = own
	}
	words, groups := x.Shape[len(x.Shape)-1], scale.Shape[len(scale.Shape)-1]
	if set.Bits != 4 && set.Bits != 8 {
		return errorf(x.Name, "codes of %d bits, want 4 or 8", set.Bits)
	}
	if set.Group != 32 && set.Group != 64 && set.Group != 128 {
		return errorf(x.Name, "groups of %d, want 32, 64 or 128", set.Group)
	}
	shape := widened(x.Shape, 32, set.Bits)
	want := widened(shape, 1, set.Group)
	if words*32 != shape[len(shape)-1]*set.Bits || groups*set.Group != shape[len(shape)-1] || !slices.Equal(scale.Shape, want) {
		return errorf(scale.Name, "shape %v, want %v for groups of %d codes of %d bits", scale.Shape, want, set.Group, set.Bits)
	}
	read := scalars(scale.DType)
	if read == nil {
		return errorf(scale.Name, "is %s, want F16, BF16 or F32", scale.DType)
	}
	w := &Weights{Name: x.Name, Shape: shape, Format: Affine, Parts: []safetensors.Tensor{x, scale, bias}, Bits: int(set.Bits)}
	c := affine{
		codes: o.ckpt.Bytes(x), scales: o.ckpt.Bytes(scale), biases: o.ckpt.Bytes(bias),
		read: read, size: int64(scale.DType.Bits() / 8), cols: w.Cols(), group: set.Group,
	}
	if set.Bits == 4 {
		w.codec = &affine4{c}
	} else {
		w.codec = &affine8{c}
	}
	o.add(w)
	return nil
}

// int4 adds the weights of a compressed-tensors matrix of 4-bit integers, symmetric,
// in groups of 32.
func (o *opener) int4(x safetensors.Tensor, base string) error {
	for _, suffix := range []string{".weight_zero_point", ".weight_g_idx"} {
		if _, ok := o.ckpt.Tensor(base + suffix); ok {
			return errorf(x.Name, "has %s%s, which is not supported", base, suffix)
		}
	}
	scale, ok := o.companion(base + ".weight_scale")
	if !ok {
		return errorf(x.Name, "no tensor %s.weight_scale", base)
	}
	if x.DType != safetensors.I32 || len(x.Shape) != 2 {
		return errorf(x.Name, "is %s %v, want a matrix of I32 or U8", x.DType, x.Shape)
	}
	shape := widened(x.Shape, 8, 1)
	if given, ok := o.ckpt.Tensor(base + ".weight_shape"); ok {
		v, err := o.ckpt.Ints(given)
		if err != nil || !slices.Equal(v, shape) {
			return errorf(given.Name, "is %v, want %v", v, shape)
		}
		o.drop(given.Name)
	}
	want := widened(shape, 1, int4Group)
	if shape[1]%int4Group != 0 || !slices.Equal(scale.Shape, want) {
		return errorf(scale.Name, "shape %v, want %v for groups of %d", scale.Shape, want, int4Group)
	}
	read := scalars(scale.DType)
	if read == nil {
		return errorf(scale.Name, "is %s, want F16, BF16 or F32", scale.DType)
	}
	w := &Weights{Name: base + ".weight", Shape: shape, Format: INT4, Parts: []safetensors.Tensor{x, scale}, Bits: 4}
	w.codec = &int4{
		codes: o.ckpt.Bytes(x), scales: o.ckpt.Bytes(scale),
		read: read, size: int64(scale.DType.Bits() / 8), cols: shape[1],
	}
	o.add(w)
	return nil
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// squeeze returns a shape without its axes of length 1.
func squeeze(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(n int64) bool { return n == 1 })
}
