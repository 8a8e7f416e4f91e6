package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/store"
)

// ollamaCreateRequest is the body of /api/create.
type ollamaCreateRequest struct {
	ollamaTask
	From       string                     `json:"from"`
	Files      map[string]string          `json:"files"` // digests of blobs by names of files
	Template   string                     `json:"template"`
	System     string                     `json:"system"`
	License    stringList                 `json:"license"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Messages   []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Modelfile string `json:"modelfile"` // of older clients: all of the above as text

	// Refused by name.
	Path         string            `json:"path"`
	Quantize     string            `json:"quantize"`
	Quantization string            `json:"quantization"`
	Adapters     map[string]string `json:"adapters"`
	RemoteHost   string            `json:"remote_host"`
}

// ollamaCreate is POST /api/create.
func (s *Server) ollamaCreate(w http.ResponseWriter, r *http.Request) error {
	var req ollamaCreateRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	st, err := s.theStore()
	if err != nil {
		return err
	}
	if _, err := store.ParseName(req.name()); err != nil {
		return storeError(req.name(), err)
	}
	f, err := req.modelfile()
	if err != nil {
		return err
	}
	return req.run(w, r, func(ctx context.Context, progress func(store.Progress)) error {
		_, err := st.Create(ctx, req.name(), f, progress)
		return err
	})
}

// modelfile is the request in the words of the store. It has no folder: a request
// must not read files of the server.
func (r *ollamaCreateRequest) modelfile() (*store.Modelfile, error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	f := new(store.Modelfile)
	if r.Modelfile != "" {
		var err error
		if f, err = store.ParseModelfile(strings.NewReader(r.Modelfile)); err != nil {
			return nil, invalid("modelfile", "%w", err)
		}
	}
	if r.From != "" {
		f.From = append(f.From, store.From{Ref: r.From})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		digest := r.Files[name]
		if !strings.HasPrefix(digest, "sha256:") {
			return nil, invalid("files."+name, "%.80q is not the digest of a blob, sha256:HEX", digest)
		}
		f.From = append(f.From, store.From{Ref: digest, Name: name})
	}
	if len(f.From) == 0 {
		return nil, invalid("from", "is missing, and there are no files")
	}
	if r.Template != "" {
		f.Template = r.Template
	}
	if err := store.CheckTemplate(f.Template); err != nil {
		return nil, invalid("template", "%w", err)
	}
	if r.System != "" {
		f.System = r.System
	}
	if len(r.License) > 0 {
		f.License = r.License
	}
	for i, m := range r.Messages {
		if !slices.Contains([]string{"system", "user", "assistant"}, m.Role) {
			return nil, invalid(fmt.Sprintf("messages[%d].role", i), "%q is not known, want system, user or assistant", m.Role)
		}
		f.Messages = append(f.Messages, store.Message{Role: m.Role, Content: m.Content})
	}
	return f, r.setParams(&f.Params)
}

// setParams reads the values as a Modelfile has them; the sequences of stop may be
// a list.
func (r *ollamaCreateRequest) setParams(p *store.Params) error {
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		at := "parameters." + name
		var values []json.RawMessage
		if json.Unmarshal(r.Parameters[name], &values) != nil {
			values = []json.RawMessage{r.Parameters[name]}
		}
		for _, v := range values {
			text := string(v)
			if strings.HasPrefix(text, `"`) {
				if err := json.Unmarshal(v, &text); err != nil {
					return invalid(at, "%w", err)
				}
			}
			if err := p.Set(name, text); err != nil {
				return invalid(at, "%w", err)
			}
		}
	}
	return nil
}

// refuse names what is not done here.
func (r *ollamaCreateRequest) refuse() error {
	switch {
	case r.Path != "":
		return unsupported("path", "files of the server are not read: put them as blobs and name these in files")
	case r.Quantize != "" || r.Quantization != "":
		return unsupported("quantize", "models are not quantised here: convert-inkling --outtype does it")
	case len(r.Adapters) > 0:
		return unsupported("adapters", "there are no adapters here")
	case r.RemoteHost != "":
		return unsupported("remote_host", "models of other hosts are not served")
	}
	return nil
}
