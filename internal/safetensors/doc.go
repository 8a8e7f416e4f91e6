// Package safetensors reads checkpoints in the safetensors format, in pure Go.
//
// A file is the length of its header as little-endian uint64, the header, and the
// data. The header is a JSON object: each key is a tensor's name, its value has
// dtype, shape (row-major: the last dimension is the fastest) and data_offsets,
// the first and the end byte of the tensor from the start of the data. The key
// __metadata__ holds strings for people.
//
// A checkpoint is one such file or several shards, with an index that says which
// tensor is in which shard. [OpenDir] and [OpenFile] map the files and check all
// of that before anyone reads a tensor: the tensors of each file cover its data
// exactly, without holes or overlaps, and the index and the shards name the same
// tensors. A truncated download is an error at open.
package safetensors
