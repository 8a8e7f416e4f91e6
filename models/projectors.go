package models

import (
	"fmt"
	"maps"
	"slices"
)

// projectorKind is how a kind of projector is opened, and the architecture that
// its rows are for.
type projectorKind struct {
	arch string
	open openProjector
}

// RegisterProjector makes a projector known by its clip.*.projector_type. Its rows
// are for text models of the architecture arch. Called from init functions only.
func RegisterProjector(kind, arch string, open openProjector) {
	projectors[kind] = projectorKind{arch, open}
}

// OpenProjector loads the media towers of an mmproj file.
func OpenProjector(f *File, p Params) (Projector, error) {
	kind, err := kindOf(f)
	if err != nil {
		return nil, err
	}
	return kind.open(f, p)
}

// CheckProjector is an error if an mmproj file is of another family than the text
// model: rows of the same width would be taken for what they are not.
func CheckProjector(mmproj, text *File) error {
	kind, err := kindOf(mmproj)
	if err != nil {
		return err
	}
	arch, err := text.Str("general.architecture")
	if err != nil {
		return err
	}
	if arch != kind.arch {
		return &UnsupportedError{mmproj.Path(), fmt.Sprintf("is a projector for models of architecture %q, %s is %q: the two files are of different models", kind.arch, text.Path(), arch)}
	}
	return nil
}

// kindOf finds the kind of an mmproj file among those that are registered.
func kindOf(f *File) (k projectorKind, err error) {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return k, err
	}
	if arch != "clip" {
		return k, &UnsupportedError{f.Path(), fmt.Sprintf("is not a projector: general.architecture is %q, want \"clip\"", arch)}
	}
	for _, key := range []string{"clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"} {
		kind, err := f.StrOr(key, "")
		if err != nil {
			return k, err
		}
		if kind == "" {
			continue
		}
		if k, ok := projectors[kind]; ok {
			return k, nil
		}
		return k, &UnsupportedError{f.Path(), fmt.Sprintf("%s %q is not supported (supported: %v)", key, kind, slices.Sorted(maps.Keys(projectors)))}
	}
	return k, &UnsupportedError{f.Path(), "names no projector type (clip.vision.projector_type)"}
}
