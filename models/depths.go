package models

import "fmt"

// OwnDepths is the number of layers for multi-token prediction that a file holds:
// its last blocks that have an input projection of their own. A text model's file
// with such blocks counts them in block_count, as llama.cpp's converters do; a file
// of nothing else has all of them.
func OwnDepths(f *File) int {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return 0
	}
	blocks, err := f.Uint(arch + ".block_count")
	if err != nil {
		return 0
	}
	n := uint64(0)
	for n < blocks {
		if _, ok := f.Tensor(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", blocks-1-n)); !ok {
			break
		}
		n++
	}
	return int(n)
}
