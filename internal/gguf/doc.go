// Package gguf reads and writes GGUF, the file format of ggml, in pure Go.
//
// A file has these parts, all numbers little-endian; a string is its length as
// uint64 and its bytes, without a closing zero:
//
//  1. magic "GGUF", version uint32 (2 and 3 have the same layout), number of
//     tensors int64, number of key-value pairs int64;
//  2. each pair: key string, value type uint32, value. An array is its element
//     type uint32, its length uint64 and its elements;
//  3. each tensor: name string, number of dimensions uint32, dimensions int64
//     (ne0 first), type uint32, offset uint64 from the start of part 4;
//  4. the data of the tensors in the same order, part 4 and each tensor starting
//     on a multiple of general.alignment (32 when that key is absent).
//
// [Open] maps a file and checks every length, count and offset against the size
// of the mapping before it takes memory, so a truncated or hostile file is an
// error at open and never a fault later. It is at least as strict as ggml's own
// reader: what Open accepts does not make ggml abort.
package gguf
