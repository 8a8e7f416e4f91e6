package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/models"
)

// companion is a kind of file that lies beside a model: KIND-NAME-TYPE.gguf.
type companion struct {
	kind, what, flag string
	types            []string // the preferred ones first
}

var (
	projectorFile = companion{"mmproj", "projectors", "--mmproj", []string{"bf16", "f16", "f32", "q8_0"}}
	mtpFile       = companion{"mtp", "files for multi-token prediction", "--mtp", []string{"q8_0", "bf16", "f16", "f32"}}
)

// FindProjector looks beside a text GGUF for its projector: mmproj-NAME.gguf
// for NAME.gguf, or else one whose name, without its type, begins the model's
// name or says nothing, as mmproj-F16.gguf. Of several types the one nearest to
// the published BF16 is taken. It returns "" if there is none, and an error if
// several of one type may be meant. A link that has none beside it is followed.
func FindProjector(model string) (string, error) { return projectorFile.find(model) }

// FindMTP looks in the same way for the layers for multi-token prediction, unless
// the model's own file holds them. Of several types the smallest that guesses as
// well is taken.
func FindMTP(model string) (string, error) {
	path, err := mtpFile.find(model)
	if path == "" || err != nil {
		return path, err
	}
	f, err := models.OpenFile(model)
	if err != nil {
		return "", err
	}
	if models.OwnDepths(f) > 0 {
		path = ""
	}
	return path, errors.Join(err, f.Close())
}

func (k companion) find(model string) (string, error) {
	found, err := k.beside(model)
	if found != "" || err != nil {
		return found, err
	}
	if target, err := filepath.EvalSymlinks(model); err == nil && target != model {
		return k.beside(target)
	}
	return "", nil
}

func (k companion) beside(model string) (string, error) {
	all, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(model)), k.kind+"*.gguf"))
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(model), ".gguf")
	related := map[string][]string{} // by type
	for _, p := range all {
		of := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(p), ".gguf"), k.kind), "-")
		if of == name {
			return p, nil
		}
		typ := strings.ToLower(of[strings.LastIndexByte(of, '-')+1:])
		stem := of
		if slices.Contains(k.types, typ) {
			stem = strings.TrimSuffix(of[:len(of)-len(typ)], "-")
		} else {
			typ = ""
		}
		if stem == "" || stem == "model" || name == stem || strings.HasPrefix(name, stem+"-") {
			related[typ] = append(related[typ], p)
		}
	}
	for _, typ := range append([]string{""}, k.types...) {
		switch ps := related[typ]; len(ps) {
		case 0:
		case 1:
			return ps[0], nil
		default:
			return "", fmt.Errorf("%s: several %s may belong to it (%s): name one by %s, or %s off", model, k.what, strings.Join(ps, ", "), k.flag, k.flag)
		}
	}
	return "", nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}
