package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/grammar"
)

// Bounds of the grammars of calls, of a request's tools together and of those that
// are kept for requests to come. Clients declare some dozens of tools of some
// hundred states each.
const (
	maxTools       = 256
	keptCalls      = maxTools
	keptCallStates = 1 << 18
)

// tooLargeStates is what a schema counts for that was given up as too large.
const tooLargeStates = 1 << 16

// anyObject is the schema of arguments that nothing is said about.
var anyObject = []byte(`{"type":"object"}`)

// callGrammars are what the bodies of calls are held to, each compiled once.
type callGrammars struct {
	mu     sync.Mutex
	kept   []keptCall // the one used last at the end
	states int
}

type keptCall struct {
	frame, parameters string
	grammar           *grammar.Grammar
}

// of returns the grammar of calls of a tool. calls is nil for models without a
// protocol for them: the parameters are then compiled as they are.
func (c *callGrammars) of(calls *chat.Calls, f chat.Function) (*grammar.Grammar, error) {
	frame, member := anyObject, ""
	if calls != nil {
		frame, member = calls.Body(f.Name)
	}
	parameters := f.Parameters
	if parameters == nil {
		parameters = json.RawMessage(anyObject)
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.kept, func(k keptCall) bool { return k.frame == string(frame) && k.parameters == string(parameters) })
	if i >= 0 {
		k := c.kept[i]
		c.kept = append(slices.Delete(c.kept, i, i+1), k)
		c.mu.Unlock()
		return k.grammar, nil
	}
	c.mu.Unlock()
	g, err := grammar.FromJSONSchemaWithin(frame, member, parameters)
	if err != nil {
		return nil, err
	}
	c.keep(keptCall{string(frame), string(parameters), g})
	return g, nil
}

func (c *callGrammars) keep(k keptCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k)
	c.states += k.grammar.States()
	for len(c.kept) > keptCalls || c.states > keptCallStates {
		c.states -= c.kept[0].grammar.States()
		c.kept = slices.Delete(c.kept, 0, 1)
	}
}

// validateParameters compiles what the tools say of their arguments. What no call
// can be held to is an error where one has to be; else only what is no schema, as
// the model is merely told of it.
func (e *Engine) validateParameters(r *Request, functions []chat.Function) error {
	if len(functions) > maxTools {
		return &RequestError{Param: "tools", Err: fmt.Errorf("%d tools, at most %d are allowed", len(functions), maxTools)}
	}
	calls, _ := chat.NewCalls(e.vocab, nil)
	states := 0
	for i, f := range functions {
		g, err := e.calls.of(calls, f)
		switch {
		case err == nil:
			states += g.States()
		case errors.Is(err, grammar.ErrTooLarge):
			states += tooLargeStates
		}
		if states > keptCallStates {
			return &RequestError{Param: "tools", Err: errors.New("the schemas of their parameters are too large together")}
		}
		var unsupported *grammar.UnsupportedError
		held := r.ToolChoice.Mode == ToolsRequired || r.ToolChoice.Mode == ToolsFunction && r.ToolChoice.Name == f.Name
		if err == nil || !held && (errors.As(err, &unsupported) || errors.Is(err, grammar.ErrTooLarge)) {
			continue
		}
		return &RequestError{Param: fmt.Sprintf("tools[%d].function.parameters", i), Err: err}
	}
	return nil
}
