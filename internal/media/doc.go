// Package media turns image, audio and video files into the arrays that the
// model's towers read.
//
// The contract is the reference preprocessing in Python: what Pillow makes of
// an image file, byte for byte where that is possible, and what the reference
// feature extractor makes of a sound. Go's own conventions (premultiplied
// alpha, replicated chroma, full-range WebP colour) differ from that and are
// undone here.
//
// Every size that a file states is compared with a limit before memory is
// taken, and damaged data gives a [FormatError], never a panic.
package media
