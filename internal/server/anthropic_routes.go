package server

import (
	"net/http"
	"time"
)

// anthropicHeader tells Anthropic's clients from OpenAI's on the paths that both
// have.
const anthropicHeader = "Anthropic-Version"

// anthropicRoutes are those of Anthropic's API.
func (s *Server) anthropicRoutes() []route {
	return []route{
		{method: http.MethodPost, path: "/v1/messages", dialect: anthropic, handle: s.anthropicMessages},
		{method: http.MethodPost, path: "/v1/messages/count_tokens", dialect: anthropic, handle: s.anthropicCount},
	}
}

// anthropicModel is a model as Anthropic's clients list it.
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

func anthropicModelOf(m *Model) anthropicModel {
	return anthropicModel{Type: "model", ID: m.Name, DisplayName: m.Name, CreatedAt: m.Modified.UTC().Truncate(time.Second)}
}

// anthropicModelList is one page with all models.
type anthropicModelList struct {
	Data    []anthropicModel `json:"data"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id"`
	LastID  *string          `json:"last_id"`
}

func anthropicModels(models []*Model) anthropicModelList {
	list := anthropicModelList{Data: []anthropicModel{}}
	for _, m := range models {
		list.Data = append(list.Data, anthropicModelOf(m))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return list
}
