package server

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/inkling-go/inkling/internal/chat"
)

// anthropicContent is text, or a list of blocks.
type anthropicContent struct {
	blocks []anthropicBlock
	paths  []string // of the blocks
	list   bool
}

func (c *anthropicContent) decode(d *decoder, tok json.Token, path string) error {
	if s, ok := tok.(string); ok {
		if s != "" {
			c.blocks, c.paths = []anthropicBlock{{Type: "text", Text: &s}}, []string{path}
		}
		return nil
	}
	if tok != json.Delim('[') {
		return invalid(path, "is %s, want a string or an array", typeName(tok))
	}
	c.list = true
	return d.array(tok, path, func(path string, tok json.Token) error {
		var b anthropicBlock
		err := d.value(tok, path, reflect.ValueOf(&b).Elem())
		c.blocks, c.paths = append(c.blocks, b), append(c.paths, path)
		return err
	})
}

// parts are blocks that are content and nothing else: of a system prompt, or of a
// tool's result.
func (c *anthropicContent) parts() ([]chat.Part, error) {
	var parts []chat.Part
	for i := range c.blocks {
		p, err := c.blocks[i].part(c.paths[i])
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// part is a block of content.
func (b *anthropicBlock) part(path string) (chat.Part, error) {
	switch b.Type {
	case "text":
		return textPart(b.Text, path)
	case "image":
		return b.medium(chat.Image, path+".source")
	case "audio": // not Anthropic's
		return b.medium(chat.Audio, path+".source")
	case "video": // not Anthropic's
		return b.medium(chat.Video, path+".source")
	case "document":
		return chat.Part{}, unsupported(path+".type", "documents are not read: give their text, or pictures of their pages")
	case "":
		return chat.Part{}, invalid(path+".type", "is missing")
	}
	return chat.Part{}, unsupported(path+".type", "blocks of type %q are not known here", b.Type)
}

func (b *anthropicBlock) medium(kind chat.Kind, path string) (chat.Part, error) {
	s := &b.Source
	switch {
	case s.Type == "base64" && s.Data == "":
		return chat.Part{}, invalid(path+".data", "is missing")
	case s.Type == "base64":
		return chat.Part{Kind: kind, Source: dataURL(s.MediaType, s.Data), Field: path}, nil
	case s.Type == "url" && s.URL == "":
		return chat.Part{}, invalid(path+".url", "is missing")
	case s.Type == "url":
		return chat.Part{Kind: kind, Source: s.URL, Field: path}, nil
	case s.Type == "":
		return chat.Part{}, invalid(path+".type", "is missing")
	}
	return chat.Part{}, unsupported(path+".type", "sources of type %q are not known here, base64 and url are", s.Type)
}

// anthropicTool is the declaration of a tool.
type anthropicTool struct {
	toolField
}

func (t *anthropicTool) decode(d *decoder, tok json.Token, path string) error {
	var v struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description *string         `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if err := d.value(tok, path, reflect.ValueOf(&v).Elem()); err != nil {
		return err
	}
	switch {
	case v.Type != "" && v.Type != "custom":
		return unsupported(path+".type", "tools of type %q run at Anthropic's or are built into its models; those with an input_schema are known here", v.Type)
	case len(v.InputSchema) == 0 || v.InputSchema[0] != '{':
		return invalid(path+".input_schema", "is missing, or not an object")
	}
	if err := checkToolName(v.Name, path+".name"); err != nil {
		return err
	}
	raw, err := functionTool(v.Name, v.Description, v.InputSchema)
	t.name, t.raw = v.Name, raw
	return err
}

// functionTool declares a tool as OpenAI's chat API does, which is what renderers
// take.
func functionTool(name string, description *string, parameters json.RawMessage) (json.RawMessage, error) {
	type function struct {
		Name        string          `json:"name"`
		Description *string         `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	data, err := encodeJSON(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters}})
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	return data, nil
}
