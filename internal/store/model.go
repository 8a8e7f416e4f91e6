package store

import (
	"errors"
	"strings"
	"time"
)

// ErrNotFound is wrapped by the error for a name that the store has no model of.
var ErrNotFound = errors.New("no such model in the store")

// NotFoundError is [ErrNotFound] with the names that may have been meant.
type NotFoundError struct {
	Name string
	Near []string
}

func (e *NotFoundError) Error() string {
	msg := e.Name + ": " + ErrNotFound.Error()
	if len(e.Near) > 0 {
		msg += "; there is " + strings.Join(e.Near, ", ")
	}
	return msg
}

// Unwrap returns [ErrNotFound].
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// Model is a model of the store.
type Model struct {
	Name string // as [Name.String] writes it

	// Paths of GGUF files in the store. Model is the first part of a split one;
	// the parts lie side by side. The others are empty without such a file.
	Model, MMProj, MTP string

	Params   Params
	System   string    // system message of conversations that have none
	Template string    // Jinja chat template in place of the file's; empty: the file's
	Messages []Message // that conversations begin with
	License  []string

	Digest   string // sha256:HEX of the files' hashes and the settings: the same for copies
	Size     int64  // bytes of all files
	Modified time.Time
	Source   string // where the files came from
	Details  Details
	Files    []File
}

// ID is the beginning of the digest, as lists show it.
func (m *Model) ID() string { return strings.TrimPrefix(m.Digest, "sha256:")[:idLength] }

// idLength is the number of digits of an ID.
const idLength = 12

// Message is one of the messages that a conversation begins with.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// Details are what the header of the model's file says.
type Details struct {
	Architecture string `json:"architecture"`
	Name         string `json:"name,omitempty"`
	Parameters   int64  `json:"parameters"`   // weights of the text model
	Quantization string `json:"quantization"` // as general.file_type names it, or the type of most weights
	Context      uint64 `json:"context_length,omitempty"`
	Embedding    uint64 `json:"embedding_length,omitempty"`
	Vision       bool   `json:"vision,omitempty"` // the projector takes pictures
	Audio        bool   `json:"audio,omitempty"`  // the projector takes sound
}

// Role says what a file is to its model.
type Role string

// The roles of files. A split model has several of RoleModel, in order.
const (
	RoleModel  Role = "model"
	RoleMMProj Role = "mmproj"
	RoleMTP    Role = "mtp"
)

// File is one file of a model.
type File struct {
	Role   Role   `json:"role"`
	Name   string `json:"name"`   // ends in .gguf
	Digest string `json:"digest"` // sha256:HEX
	Size   int64  `json:"size"`
}
