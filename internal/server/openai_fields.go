package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// stringList is a string or a list of strings.
type stringList []string

func (s *stringList) decode(d *decoder, tok json.Token, path string) error {
	if one, ok := tok.(string); ok {
		*s = stringList{one}
		return nil
	}
	var list []string
	err := d.value(tok, path, reflect.ValueOf(&list).Elem())
	*s = list
	return err
}

// effortField is a reasoning effort, a name or a number.
type effortField string

func (e *effortField) decode(_ *decoder, tok json.Token, path string) error {
	switch t := tok.(type) {
	case string:
		*e = effortField(t)
	case json.Number:
		*e = effortField(t)
	default:
		return invalid(path, "is %s, want a string or a number", typeName(tok))
	}
	if _, err := chat.ParseEffort(string(*e)); err != nil {
		return invalid(path, "%w", err)
	}
	return nil
}

// urlField is {"url": …}, or the URL alone.
type urlField struct {
	URL    string `json:"url"`
	Detail string `json:"detail"` // accepted: the models have one resolution
	given  bool
}

func (u *urlField) decode(d *decoder, tok json.Token, path string) error {
	u.given = true
	if s, ok := tok.(string); ok {
		u.URL = s
		return nil
	}
	var v struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	}
	err := d.value(tok, path, reflect.ValueOf(&v).Elem())
	u.URL, u.Detail = v.URL, v.Detail
	return err
}

// partsField is a content: text, or a list of parts.
type partsField struct {
	parts []chat.Part
	list  bool
	given bool
}

// read reads the content; element reads an element of a list.
func (c *partsField) read(d *decoder, tok json.Token, path string, element func(path string, tok json.Token) (chat.Part, error)) error {
	c.given = true
	if s, ok := tok.(string); ok {
		if s != "" {
			c.parts = []chat.Part{{Kind: chat.Text, Text: s}}
		}
		return nil
	}
	if tok != json.Delim('[') {
		return invalid(path, "is %s, want a string or an array", typeName(tok))
	}
	c.list = true
	return d.array(tok, path, func(path string, tok json.Token) error {
		part, err := element(path, tok)
		if part.Kind != chat.Text {
			part.Field = path
		}
		c.parts = append(c.parts, part)
		return err
	})
}

// contentField is the content of a message. Elements of a list may be texts alone.
type contentField struct{ partsField }

func (c *contentField) decode(d *decoder, tok json.Token, path string) error {
	return c.read(d, tok, path, func(path string, tok json.Token) (chat.Part, error) {
		if s, ok := tok.(string); ok {
			return chat.Part{Kind: chat.Text, Text: s}, nil
		}
		var p contentPart
		if err := d.value(tok, path, reflect.ValueOf(&p).Elem()); err != nil {
			return chat.Part{}, err
		}
		return p.part(path)
	})
}

// part is the part in the conversation's words.
func (p *contentPart) part(path string) (chat.Part, error) {
	switch p.Type {
	case "text", "input_text", "output_text":
		return textPart(p.Text, path)
	case "refusal":
		return chat.Part{Kind: chat.Text, Text: p.Refusal}, nil
	case "image_url":
		return p.ImageURL.part(chat.Image, path+".image_url")
	case "audio_url":
		return p.AudioURL.part(chat.Audio, path+".audio_url")
	case "video_url":
		part, err := p.VideoURL.part(chat.Video, path+".video_url")
		if err == nil {
			err = p.frames(&part, path)
		}
		return part, err
	case "input_audio":
		if p.InputAudio.Data == "" {
			return chat.Part{}, invalid(path+".input_audio.data", "is missing")
		}
		return chat.Part{Kind: chat.Audio, Source: dataURL("audio/"+p.InputAudio.Format, p.InputAudio.Data)}, nil
	case "file":
		return p.file(path + ".file")
	case "":
		return chat.Part{}, invalid(path+".type", "is missing")
	}
	return chat.Part{}, invalid(path+".type", "%q is not known, want text, image_url, input_audio, audio_url, video_url or file", p.Type)
}

// textPart is a part with a text, which may be empty but has to be there.
func textPart(text *string, path string) (chat.Part, error) {
	if text == nil {
		return chat.Part{}, invalid(path+".text", "is missing")
	}
	return chat.Part{Kind: chat.Text, Text: *text}, nil
}

func (u *urlField) part(kind chat.Kind, path string) (chat.Part, error) {
	if u.URL == "" {
		return chat.Part{}, invalid(path+".url", "is missing")
	}
	switch u.Detail {
	case "", "auto", "low", "high", "original":
		return chat.Part{Kind: kind, Source: u.URL}, nil
	}
	return chat.Part{}, invalid(path+".detail", "%q is not known, want auto, low, high or original", u.Detail)
}

// maxClipFrames bounds the frames that a request may ask for; models take some
// hundreds.
const maxClipFrames = 1 << 12

// frames says how a clip is sampled.
func (p *contentPart) frames(part *chat.Part, path string) error {
	if p.FPS != nil {
		if !(*p.FPS > 0 && *p.FPS <= 1000) {
			return invalid(path+".fps", "is %g, want more than 0, at most 1000", *p.FPS)
		}
		part.FPS = *p.FPS
	}
	if p.NumFrames != nil {
		if *p.NumFrames < 1 || *p.NumFrames > maxClipFrames {
			return invalid(path+".num_frames", "is %d, want 1 to %d", *p.NumFrames, maxClipFrames)
		}
		part.Frames = *p.NumFrames
	}
	return nil
}

// file is a medium that comes as a file: what kind it is, its data URL or its
// first bytes say. Text files are text.
func (p *contentPart) file(path string) (chat.Part, error) {
	if p.File.FileID != "" {
		return chat.Part{}, unsupported(path+".file_id", "files are not kept here: give file_data")
	}
	if p.File.FileData == "" {
		return chat.Part{}, invalid(path+".file_data", "is missing")
	}
	typ := ""
	payload := p.File.FileData
	if rest, ok := strings.CutPrefix(payload, "data:"); ok {
		head, body, _ := strings.Cut(rest, ",")
		typ, _, _ = strings.Cut(strings.ToLower(head), ";")
		payload = body
	}
	data, err := decodeBase64(payload)
	if err != nil {
		return chat.Part{}, invalid(path+".file_data", "%w", err)
	}
	if typ == "" || typ == "application/octet-stream" {
		typ = http.DetectContentType(data)
	}
	source := dataURL(typ, payload)
	switch kind, _, _ := strings.Cut(typ, "/"); {
	case kind == "image":
		return chat.Part{Kind: chat.Image, Source: source}, nil
	case kind == "audio" || typ == "application/ogg":
		return chat.Part{Kind: chat.Audio, Source: source}, nil
	case kind == "video":
		return chat.Part{Kind: chat.Video, Source: source}, nil
	case kind == "text" || typ == "application/json":
		return chat.Part{Kind: chat.Text, Text: string(bytes.ToValidUTF8(data, nil))}, nil
	}
	return chat.Part{}, unsupported(path+".file_data", "files of type %s are not read; pictures, sounds, videos and text are", typ)
}

// dataURL makes a data URL of base64 text, unless it is one.
func dataURL(mediaType, base64 string) string {
	if strings.HasPrefix(base64, "data:") {
		return base64
	}
	return "data:" + mediaType + ";base64," + base64
}

// toolField is the declaration of a tool.
type toolField struct {
	name string
	raw  json.RawMessage
}

func (t *toolField) decode(d *decoder, tok json.Token, path string) error {
	raw, err := d.raw(tok)
	if err != nil {
		return err
	}
	var v struct {
		Type     string `json:"type"`
		Function *struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		} `json:"function"`
	}
	if err := decodeAt(raw, path, &v); err != nil {
		return err
	}
	switch {
	case v.Type != "" && v.Type != "function":
		return unsupported(path+".type", "tools of type %q are not known here, functions are", v.Type)
	case v.Function == nil:
		return invalid(path+".function", "is missing")
	case len(v.Function.Parameters) > 0 && v.Function.Parameters[0] != '{':
		return invalid(path+".function.parameters", "is not an object")
	}
	t.name, t.raw = v.Function.Name, raw
	return checkToolName(t.name, path+".function.name")
}

// toolName is what a tool may be called: what MCP allows, which is a little more
// than OpenAI (64 characters, no dots) and Anthropic (no dots) do. Ollama allows
// anything, but then a call can not be told from what surrounds it in every
// protocol of the models.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

func checkToolName(name, path string) error {
	switch {
	case name == "":
		return invalid(path, "is missing")
	case !toolName.MatchString(name):
		return invalid(path, "%.150q: want 1 to 128 letters, digits, _, - and .", name)
	}
	return nil
}

// toolCallField is a call in the history.
type toolCallField struct {
	call chat.ToolCall
}

func (t *toolCallField) decode(d *decoder, tok json.Token, path string) error {
	var v struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := d.value(tok, path, reflect.ValueOf(&v).Elem()); err != nil {
		return err
	}
	if v.Function.Name == "" {
		return invalid(path+".function.name", "is missing")
	}
	args, err := argumentsObject(v.Function.Arguments, path+".function.arguments")
	t.call = chat.ToolCall{ID: v.ID, Name: v.Function.Name, Arguments: args}
	return err
}

// argumentsObject takes an object, or a string with one, or nothing.
func argumentsObject(raw json.RawMessage, path string) (json.RawMessage, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, invalid(path, "is not a JSON object")
	}
	return raw, nil
}

// toolChoiceField is a word, or {"type":"function","function":{"name":…}}.
type toolChoiceField struct {
	engine.ToolChoice
}

func (t *toolChoiceField) decode(d *decoder, tok json.Token, path string) error {
	if s, ok := tok.(string); ok {
		switch s {
		case engine.ToolsAuto, engine.ToolsNone, engine.ToolsRequired:
			t.Mode = s
			return nil
		}
		return invalid(path, "%q is not known, want none, auto, required or a function", s)
	}
	var v struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := d.value(tok, path, reflect.ValueOf(&v).Elem()); err != nil {
		return err
	}
	if v.Type != "function" {
		return unsupported(path+".type", "%q is not known here, want function", v.Type)
	}
	if v.Function.Name == "" {
		return invalid(path+".function.name", "is missing")
	}
	t.Mode, t.Name = engine.ToolsFunction, v.Function.Name
	return nil
}
