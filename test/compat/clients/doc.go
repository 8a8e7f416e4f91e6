// Package clients runs the programs that others talk to a port with, OpenAI's,
// Ollama's and Anthropic's own client libraries in Go and JavaScript, unchanged
// against inkling-run serve with the trained test model, whose answers are known.
// It is a module of its own, so that their code is no dependency of the tools:
// make test-compat runs it, and downloads them the first time.
package clients
