package server

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// responsesInput is a user's text, or a list of items.
type responsesInput struct {
	items []responsesItem
	paths []string
}

func (in *responsesInput) decode(d *decoder, tok json.Token, path string) error {
	if s, ok := tok.(string); ok {
		text := responsesContent{partsField{given: true, parts: []chat.Part{{Kind: chat.Text, Text: s}}}}
		in.items, in.paths = []responsesItem{{Role: chat.User, Content: text}}, []string{path}
		return nil
	}
	if tok != json.Delim('[') {
		return invalid(path, "is %s, want a string or an array", typeName(tok))
	}
	return d.array(tok, path, func(path string, tok json.Token) error {
		var item responsesItem
		err := d.value(tok, path, reflect.ValueOf(&item).Elem())
		in.items, in.paths = append(in.items, item), append(in.paths, path)
		return err
	})
}

// responsesContent is the content of an item.
type responsesContent struct{ partsField }

func (c *responsesContent) decode(d *decoder, tok json.Token, path string) error {
	return c.read(d, tok, path, func(path string, tok json.Token) (chat.Part, error) {
		var p responsesPart
		if err := d.value(tok, path, reflect.ValueOf(&p).Elem()); err != nil {
			return chat.Part{}, err
		}
		return p.part(path)
	})
}

// part is the part in the conversation's words. What /v1/chat/completions takes
// is taken as well.
func (p *responsesPart) part(path string) (chat.Part, error) {
	switch p.Type {
	case "reasoning_text", "summary_text":
		return textPart(p.Text, path)
	case "input_image":
		if p.FileID != "" {
			return chat.Part{}, unsupported(path+".file_id", "files are not kept here: give image_url")
		}
		url := urlField{URL: p.ImageURL.URL, Detail: p.Detail}
		part, err := url.part(chat.Image, path+".image_url")
		if err != nil {
			bad := asError(err)
			bad.Param = strings.NewReplacer(".image_url.url", ".image_url", ".image_url.detail", ".detail").Replace(bad.Param)
		}
		return part, err
	case "input_file":
		if p.FileURL != "" {
			return chat.Part{}, unsupported(path+".file_url", "is not fetched: what kind a file is, file_data tells; pictures have a part of their own")
		}
		p.File.FileData, p.File.FileID = p.FileData, p.FileID
		return p.file(path)
	}
	return p.contentPart.part(path)
}

func (c *responsesContent) text() string {
	var all []string
	for _, p := range c.parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}

// responsesTool is the declaration of a function.
type responsesTool struct {
	toolField
	given json.RawMessage // as the response repeats it
}

func (t *responsesTool) decode(d *decoder, tok json.Token, path string) error {
	raw, err := d.raw(tok)
	if err != nil {
		return err
	}
	var v struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description *string         `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	if err := decodeAt(raw, path, &v); err != nil {
		return err
	}
	switch {
	case v.Type != "function":
		return unsupported(path+".type", "tools of type %q are not run here, functions are the caller's to run", v.Type)
	case len(v.Parameters) > 0 && v.Parameters[0] != '{':
		return invalid(path+".parameters", "is not an object")
	}
	if err := checkToolName(v.Name, path+".name"); err != nil {
		return err
	}
	t.given, t.name = raw, v.Name
	t.raw, err = functionTool(v.Name, v.Description, v.Parameters)
	return err
}

// responsesToolChoice is a word, or {"type":"function","name":…}.
type responsesToolChoice struct {
	engine.ToolChoice
	given json.RawMessage
}

func (t *responsesToolChoice) decode(d *decoder, tok json.Token, path string) error {
	raw, err := d.raw(tok)
	if err != nil {
		return err
	}
	t.given = raw
	if word, ok := tok.(string); ok {
		switch word {
		case engine.ToolsAuto, engine.ToolsNone, engine.ToolsRequired:
			t.Mode = word
			return nil
		}
		return invalid(path, "%q is not known, want none, auto, required or a function", word)
	}
	var v struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if err := decodeAt(raw, path, &v); err != nil {
		return err
	}
	switch {
	case v.Type != "function":
		return unsupported(path+".type", "%q is not known here, want function", v.Type)
	case v.Name == "":
		return invalid(path+".name", "is missing")
	}
	t.Mode, t.Name = engine.ToolsFunction, v.Name
	return nil
}
