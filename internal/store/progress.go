package store

// Progress is one report of a command at work, in the terms of Ollama's API.
type Progress struct {
	Status    string `json:"status"`           // what is being done, for people
	Digest    string `json:"digest,omitempty"` // of the file in work
	File      string `json:"-"`                // its name
	Total     int64  `json:"total,omitempty"`  // bytes of it
	Completed int64  `json:"completed,omitempty"`
}
