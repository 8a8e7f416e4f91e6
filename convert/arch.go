package convert

import (
	"fmt"
	"slices"
	"strings"
)

// Arch knows the checkpoints of one architecture: how their config reads, what
// their tensors are called, and which GGUF tensors and keys they become.
type Arch interface {
	// Name is the name of the architecture, which is also its folder's.
	Name() string

	// ModelTypes lists the values of config.json's model_type that Plan takes.
	ModelTypes() []string

	// Refuses says why checkpoints with this model_type are refused although the
	// name suggests this architecture; empty if that is not so.
	Refuses(modelType string) string

	// Optional reports whether a checkpoint may lack the tensor with this name, in
	// that the shard that holds it was not downloaded.
	Optional(tensor string) bool

	// Plan describes the output files of a checkpoint. It reads config files and
	// tensor shapes but no weights. Errors are a [FormatError], an
	// [UnsupportedError] or a [TensorsError].
	Plan(src *Source) (*Plan, error)
}

// archs is written by Register during initialisation only.
var archs []Arch

// Register makes an architecture known to [Run]. Call it from an init function.
func Register(a Arch) { archs = append(archs, a) }

// checkClasses refuses a config whose architectures, the names of the classes that the
// checkpoint was saved by, are of another family than its model_type. Such a name
// begins as one of the family's model types does: KimiK25ForConditionalGeneration.
func checkClasses(config *Fields, modelType string, a Arch) error {
	classes := config.Strs("architectures")
	if err := config.Err(); err != nil || len(classes) == 0 {
		return err
	}
	letters := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for _, class := range classes {
		for _, t := range a.ModelTypes() {
			if strings.HasPrefix(letters(class), letters(t)) {
				return nil
			}
		}
	}
	return &UnsupportedError{
		config.File(),
		fmt.Sprintf("architectures %q do not fit model_type %q", classes, modelType),
	}
}

// archFor returns the architecture that takes the checkpoint with this config.
func archFor(config *Fields) (Arch, error) {
	modelType := config.StrOr("", "model_type")
	if err := config.Err(); err != nil {
		return nil, err
	}
	if modelType == "" {
		return nil, &FormatError{config.File(), -1, "model_type is missing"}
	}
	var known []string
	for _, a := range archs {
		if slices.Contains(a.ModelTypes(), modelType) {
			return a, checkClasses(config, modelType, a)
		}
		if why := a.Refuses(modelType); why != "" {
			return nil, &UnsupportedError{config.File(), why}
		}
		known = append(known, a.ModelTypes()...)
	}
	slices.Sort(known)
	return nil, &UnsupportedError{
		config.File(),
		fmt.Sprintf("model_type %q, want one of: %s", modelType, strings.Join(known, ", ")),
	}
}
