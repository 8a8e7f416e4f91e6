package main

import (
	"time"

	"github.com/inkling-go/inkling/internal/store"
)

// storedInfo is what the store has about a model, in the form of show --json.
type storedInfo struct {
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

func newStoredInfo(m *store.Model) *storedInfo {
	return &storedInfo{
		Name: m.Name, Digest: m.Digest, Size: m.Size, Modified: m.Modified, Source: m.Source, MTP: m.MTP,
		Params: m.Params, System: m.System, Template: m.Template, Messages: m.Messages, License: m.License,
	}
}
