package server

import (
	"fmt"
	"net/http"

	"github.com/inkling-go/inkling/internal/chat"
)

// responsesRoutes are those of OpenAI's responses API.
func (s *Server) responsesRoutes() []route {
	return []route{
		{method: http.MethodPost, path: "/v1/responses", handle: s.responses},
		{method: http.MethodGet, path: "/v1/responses/{id}", handle: s.response},
		{method: http.MethodDelete, path: "/v1/responses/{id}", handle: s.deleteResponse},
	}
}

// responses is POST /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) error {
	var req responsesRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	before, err := s.kept.before(req.PreviousResponseID)
	if err != nil {
		return err
	}
	said, err := req.conversation(before)
	if err != nil {
		return err
	}
	t.Conversation.Messages = said
	if req.Instructions != "" {
		t.Conversation.Messages = append([]chat.Message{textMessage(chat.System, req.Instructions)}, said...)
	}
	id, err := s.openAIIdentity("resp_", t.Model)
	if err != nil {
		return err
	}
	out := newResponsesWriter(id, &req, t.Logprobs)
	if req.Stream {
		out.stream = newStream(w, typeSSE)
	}
	if _, err := s.generate(r.Context(), t, out.event); err != nil {
		return out.fail(err)
	}
	if out.response.Store {
		s.kept.keep(out.response, append(said, out.message()))
	}
	if out.stream == nil {
		writeJSON(w, http.StatusOK, out.response)
	}
	return nil
}

// response is GET /v1/responses/{id}.
func (s *Server) response(w http.ResponseWriter, r *http.Request) error {
	k, err := s.kept.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, k.response)
	return nil
}

// deleteResponse is DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := s.kept.find(id); err != nil {
		return err
	}
	s.kept.forget(id)
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	return nil
}

func responseNotFound(id string) *Error {
	return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("response %.80q is not known: some hundred of the last ones are kept, until the server ends", id)}
}
