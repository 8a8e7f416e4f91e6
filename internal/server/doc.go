// Package server answers other programs over HTTP: OpenAI's, Ollama's and
// Anthropic's routes over the same models.
//
// A request goes through three layers. A protocol file (openai_*.go, …) reads
// its JSON into a turn; turn.go, which knows no protocol, makes an
// engine.Request of it, borrows the model from the pool and turns what the
// engine says into events; the protocol file writes the events. Errors go the
// other way: whatever a handler returns is written by writeError in the shape of
// the route's protocol.
package server
