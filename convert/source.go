package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// Source is an open checkpoint: a folder with config.json, safetensors files and
// what else the publisher put beside them.
type Source struct {
	Dir     string
	Config  *Fields                 // config.json
	Tensors *safetensors.Checkpoint // every tensor of every shard that is there
	Weights *quantin.Set            // the same as weights: codes and scales put together
	Notes   []string                // about the checkpoint as a whole

	drawn *drawing // makes the weights up, if there are none
}

// Drawn reports whether the weights are made up: every tensor that is asked for is
// there, in its first spelling, and what the tensors would tell is for the config to
// say.
func (s *Source) Drawn() bool { return s.drawn != nil }

// openSource opens the checkpoint in a folder and finds its architecture. Shards of
// the index with nothing but tensors that the architecture can do without may be
// absent if they are optional. The caller closes it.
func openSource(dir string, optional bool) (*Source, Arch, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return nil, nil, err
	}
	if !st.IsDir() {
		return nil, nil, fmt.Errorf("%s: a file, want the folder of a checkpoint", dir)
	}
	config, err := ReadFields(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, nil, err
	}
	arch, err := archFor(config)
	if err != nil {
		return nil, nil, err
	}
	s := &Source{Dir: dir, Config: config}
	quant, err := s.quantisation()
	if err != nil {
		return nil, nil, err
	}
	var absent []*safetensors.MissingShardError
	needless := func(tensor string) bool { return optional && arch.Optional(tensor) }
	if s.Tensors, absent, err = safetensors.OpenDirOptional(dir, needless); err != nil {
		return nil, nil, err
	}
	for _, shard := range absent {
		s.Notes = append(s.Notes, fmt.Sprintf("shard %s of the index is not there; its %d tensors, first %s, are left out",
			shard.Shard, len(shard.Tensors), shard.Tensors[0]))
	}
	if err := s.group(quant); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, arch, nil
}

// Has reports whether the checkpoint has the weights called name, in numbers or
// quantised.
func (s *Source) Has(name string) bool {
	_, ok := s.Weights.Find(name)
	return ok
}

// HasPrefix reports whether the checkpoint has weights whose names begin with one of
// the prefixes.
func (s *Source) HasPrefix(prefixes ...string) bool {
	return slices.ContainsFunc(s.Weights.Names(), func(name string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// Close unmaps the checkpoint.
func (s *Source) Close() error { return s.Tensors.Close() }

// Path returns the path of a file of the checkpoint.
func (s *Source) Path(name string) string { return filepath.Join(s.Dir, name) }

// Optional reads a JSON object that the checkpoint may lack: nil then.
func (s *Source) Optional(name string) (*Fields, error) {
	f, err := ReadFields(s.Path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// maxTemplate bounds a chat template.
const maxTemplate = 4 << 20

// ChatTemplate returns the text of the chat template, empty if there is none. A
// file of its own goes before the one in tokenizer_config.json, as transformers
// has it.
func (s *Source) ChatTemplate() (string, error) {
	text, err := readBounded(s.Path("chat_template.jinja"), maxTemplate)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return string(text), err
	}
	for _, name := range []string{"chat_template.json", "tokenizer_config.json"} {
		f, err := s.Optional(name)
		if err != nil {
			return "", err
		}
		if f == nil || !f.Has("chat_template") {
			continue
		}
		if named := f.Objects("chat_template"); named != nil {
			return defaultTemplate(named), f.Err()
		}
		return f.StrOr("", "chat_template"), f.Err()
	}
	return "", nil
}

// defaultTemplate picks from a list of {name, template}.
func defaultTemplate(named []*Fields) string {
	for _, f := range named {
		if f.StrOr("", "name") == "default" {
			return f.StrOr("", "template")
		}
	}
	return ""
}
