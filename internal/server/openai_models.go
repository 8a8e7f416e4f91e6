package server

import "net/http"

// modelJSON is a model as OpenAI's clients list it.
type modelJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func openAIModel(m *Model) modelJSON {
	return modelJSON{ID: m.Name, Object: "model", Created: m.Modified.Unix(), OwnedBy: "inkling"}
}

// models is GET /v1/models.
func (s *Server) models(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get(anthropicHeader) != "" {
		writeJSON(w, http.StatusOK, anthropicModels(s.catalog.list()))
		return nil
	}
	list := struct {
		Object string      `json:"object"`
		Data   []modelJSON `json:"data"`
	}{Object: "list", Data: []modelJSON{}}
	for _, m := range s.catalog.list() {
		list.Data = append(list.Data, openAIModel(m))
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// model is GET /v1/models/{id}; names have slashes.
func (s *Server) model(w http.ResponseWriter, r *http.Request) error {
	m, err := s.catalog.resolve(r.PathValue("id"))
	if err != nil {
		return err
	}
	if r.Header.Get(anthropicHeader) != "" {
		writeJSON(w, http.StatusOK, anthropicModelOf(m))
		return nil
	}
	writeJSON(w, http.StatusOK, openAIModel(m))
	return nil
}
