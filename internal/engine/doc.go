// Package engine generates text: it owns a loaded model with its projector,
// vocabulary and renderer, brings requests into rows, runs them through the
// model in steps, samples, and parses what comes out.
//
// One goroutine, started by Open, makes every call into the model; requests
// queue to it.
package engine
