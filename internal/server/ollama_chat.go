package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

// ollamaChat is POST /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request) error {
	var req ollamaChatRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	return s.ollamaRespond(w, r, &req.ollamaCommon, t, len(req.Messages) == 0, ollamaInMessage)
}

// turn puts a chat into no protocol's words.
func (r *ollamaChatRequest) turn() (*turn, error) {
	t, err := r.ollamaCommon.turn()
	if err != nil {
		return nil, err
	}
	for i := range r.Messages {
		m, err := r.Messages[i].message(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		t.Conversation.Messages = append(t.Conversation.Messages, m)
	}
	return t, nil
}

// message puts media before the text, as most models have learned it.
func (m *ollamaMessage) message(path string) (chat.Message, error) {
	out := chat.Message{
		Role: strings.ToLower(m.Role), Content: slices.Concat(m.Images, m.Audio),
		Reasoning: m.Thinking, Name: m.ToolName, ToolCallID: m.ToolCallID,
	}
	out.List = len(out.Content) > 0
	if m.Content != "" {
		out.Content = append(out.Content, chat.Part{Kind: chat.Text, Text: m.Content})
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, c.call)
	}
	switch out.Role {
	case chat.System, chat.User, chat.Assistant, chat.ToolRole:
	default:
		return out, invalid(path+".role", "%q is not known, want system, user, assistant or tool", m.Role)
	}
	if len(out.ToolCalls) > 0 && out.Role != chat.Assistant {
		return out, invalid(path+".tool_calls", "only an assistant calls tools")
	}
	return out, nil
}

// ollamaGenerate is POST /api/generate.
func (s *Server) ollamaGenerate(w http.ResponseWriter, r *http.Request) error {
	var req ollamaGenerateRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	empty := req.Prompt == "" && len(req.Images)+len(req.Audio) == 0
	return s.ollamaRespond(w, r, &req.ollamaCommon, t, empty, ollamaInText)
}

// turn puts a prompt into no protocol's words.
func (r *ollamaGenerateRequest) turn() (*turn, error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	t, err := r.ollamaCommon.turn()
	if err != nil {
		return nil, err
	}
	if r.Raw {
		t.Raw, t.Prompt = true, r.Prompt
		return t, nil
	}
	if r.System != "" {
		t.Conversation.Messages = append(t.Conversation.Messages, textMessage(chat.System, r.System))
	}
	m, err := (&ollamaMessage{Role: chat.User, Content: r.Prompt, Images: r.Images, Audio: r.Audio}).message("")
	t.Conversation.Messages = append(t.Conversation.Messages, m)
	return t, err
}

// refuse names what this server does not have and that would change the answer.
func (r *ollamaGenerateRequest) refuse() error {
	switch {
	case r.Suffix != "":
		return unsupported("suffix", "the models do not fill in the middle")
	case r.Template != "":
		return unsupported("template", "a template belongs to a model: /api/create makes one that has it")
	case len(r.Context) > 0 && string(r.Context) != "[]":
		return unsupported("context", "the tokens of earlier answers are not taken; /api/chat takes their messages, which are not computed again")
	case r.Width != 0 || r.Height != 0 || r.Steps != 0:
		return unsupported("width", "the models do not paint")
	case r.Raw && (r.System != "" || len(r.Images)+len(r.Audio)+len(r.Tools) > 0):
		return invalid("raw", "a raw prompt goes without system, images, audio and tools")
	}
	return nil
}

// ollamaRespond answers, or loads or unloads the model if there is nothing to
// answer to.
func (s *Server) ollamaRespond(w http.ResponseWriter, r *http.Request, c *ollamaCommon, t *turn, empty bool, form ollamaForm) error {
	out := &ollamaWriter{form: form, begin: time.Now(), model: c.Model}
	m, err := s.catalog.resolve(t.Model)
	if err != nil {
		return err
	}
	out.model = cmp.Or(c.Model, m.Name)
	if c.Stream == nil || *c.Stream {
		out.stream = newStream(w, typeNDJSON)
	}
	if empty && t.KeepAlive != nil && *t.KeepAlive == 0 {
		s.pool.unload(m.Name)
		return out.nothing(w, "unload")
	}
	l, err := s.pool.acquire(r.Context(), m)
	if err != nil {
		return err
	}
	defer s.pool.release(l, t.KeepAlive)
	out.load = time.Since(out.begin)
	if n, room := c.Options.NumCtx, l.eng.Context(); n != nil && *n > room {
		return unsupported("options.num_ctx", "is %d, but %s was loaded with room for %d tokens: --ctx-size, or num_ctx in its Modelfile, gives it more", *n, m.Name, room)
	}
	if empty {
		return out.nothing(w, "load")
	}
	if out.stream == nil {
		answers, err := s.generateOn(r.Context(), l, t, nil)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, out.whole(answers[0]))
		return nil
	}
	if _, err := s.generateOn(r.Context(), l, t, out.event); err != nil {
		return out.stream.fail(ollama, err)
	}
	return nil
}
