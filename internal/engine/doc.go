// Package engine generates text: it owns a loaded model with its projector,
// vocabulary and renderer, brings requests into rows, runs them through the
// model in steps, samples, and parses what comes out.
//
// One goroutine, started by Open, makes every call into the model. It is the
// scheduler's: requests are tasks in slots, each a sequence of one cache. A step
// computes the next rows of all answers in one graph, and a chunk of one prompt.
// Callers get what their task says by events, on their own goroutines.
//
// A slot keeps what it holds when its task ends, for prompts that begin alike;
// states that have to make room are parked in host memory. Moving a state changes
// no bit of it; docs/numerics.md says what does.
package engine
