package describe

import (
	"time"

	"github.com/inkling-go/inkling/internal/store"
)

// StoredInfo is what the store has about a model, in the form of show --json.
type StoredInfo struct {
	Name     string          `json:"name"`
	Digest   string          `json:"digest"`
	Size     int64           `json:"size"`
	Modified time.Time       `json:"modified_at"`
	Source   string          `json:"source,omitempty"`
	MTP      string          `json:"mtp,omitempty"` // path
	Params   store.Params    `json:"parameters"`
	System   string          `json:"system,omitempty"`
	Template string          `json:"template,omitempty"`
	Messages []store.Message `json:"messages,omitempty"`
	License  []string        `json:"license,omitempty"`
}

// NewStoredInfo takes over what show tells about a model of the store.
func NewStoredInfo(m *store.Model) *StoredInfo {
	return &StoredInfo{
		Name: m.Name, Digest: m.Digest, Size: m.Size, Modified: m.Modified, Source: m.Source, MTP: m.MTP,
		Params: m.Params, System: m.System, Template: m.Template, Messages: m.Messages, License: m.License,
	}
}
