package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/grammar"
)

// constraint holds an answer to a grammar, to calls of tools, or to both: it
// says which tokens may come next. Reasoning stays free, but for the marks that
// it may not leave by.
type constraint struct {
	*steering
	parser  chat.Parser
	matcher *grammar.Matcher // nil: content is free
	calls   *chat.Calls      // nil: no call may be made
	tools   []chat.Function  // that may be called
	bodies  *callGrammars
	must    bool // a call has to come

	thought bool             // thinking has ended once
	said    bool             // content has ended
	called  bool             // a call has ended
	part    []byte           // the text of the part so far
	body    *grammar.Matcher // of the call that is being written

	bits []uint64
}

// errNoToken is of a constraint that the vocabulary can not keep.
var errNoToken = errors.New("the grammar and the choice of tools leave no token to go on with")

// constrain returns what a request is held to, nil for nothing, and the ids that
// it never has.
func (e *Engine) constrain(r *Request, parser chat.Parser) (c *constraint, never []int32, err error) {
	mode := r.ToolChoice.Mode
	if mode == ToolsNone {
		never = chat.CallOpeners(e.vocab)
	}
	must := mode == ToolsRequired || mode == ToolsFunction
	if r.Grammar == nil && !must {
		return nil, never, nil
	}
	c = &constraint{steering: e.steering(), parser: parser, must: must, bodies: &e.calls}
	c.bits = make([]uint64, len(c.text))
	if r.Grammar != nil {
		c.matcher = r.Grammar.Matcher(c.tokens)
	}
	if mode == ToolsNone {
		return c, never, nil
	}
	if c.tools, err = r.functions(); err != nil {
		return nil, nil, &RequestError{Param: "tools", Err: err}
	}
	if mode == ToolsFunction {
		c.tools = slices.DeleteFunc(c.tools, func(f chat.Function) bool { return f.Name != r.ToolChoice.Name })
	}
	if len(c.tools) > 0 {
		names := make([]string, len(c.tools))
		for i, f := range c.tools {
			names[i] = f.Name
		}
		c.calls, _ = chat.NewCalls(e.vocab, names) // nil for models without a protocol for calls
	}
	return c, never, nil
}

// free reports that there is nothing to keep, or that what had to come has come.
func (c *constraint) free() bool { return c == nil || c.matcher == nil && !c.must }

// allowed returns a bit for each id that may come next, nil for all. The slice
// is valid until the next call.
func (c *constraint) allowed() ([]uint64, error) {
	if c.free() {
		return nil, nil
	}
	clear(c.bits)
	m := c.parser.Moves()
	switch c.parser.Phase() {
	case chat.PhaseReasoning:
		c.allowText()
		c.allow(m.Leave)
	case chat.PhaseContent:
		c.allowContent(m)
	case chat.PhaseOpen:
		c.allowPart(m)
	case chat.PhaseCallName:
		c.allowName(m)
	case chat.PhaseCallArguments:
		c.allowBody(m)
	}
	for _, word := range c.bits {
		if word != 0 {
			return c.bits, nil
		}
	}
	return nil, errNoToken
}

func (c *constraint) allow(ids []int32) {
	for _, id := range ids {
		if int(id) < len(c.pieces) {
			c.bits[id/64] |= 1 << (id % 64)
		}
	}
}

func (c *constraint) allowText() { copy(c.bits, c.text) }

// wantsContent reports whether content has yet to come.
func (c *constraint) wantsContent() bool { return c.matcher != nil && !c.said && !c.called && !c.must }

func (c *constraint) allowContent(m chat.Moves) {
	if c.must { // Kimi's content needs no opening
		c.allow(m.Call)
		return
	}
	if c.called { // and goes on behind calls
		c.allow(m.End)
		c.allow(m.Call)
		return
	}
	copy(c.bits, c.matcher.Allowed())
	if c.matcher.CanEnd() {
		c.allow(m.Leave)
		c.allow(m.End)
	}
	if c.calls != nil && (c.matcher.CanEnd() || len(c.part) == 0) {
		c.allow(m.Call)
	}
}

func (c *constraint) allowPart(m chat.Moves) {
	if !c.thought && (c.must || c.wantsContent()) {
		c.allow(m.Reasoning)
	}
	if c.wantsContent() {
		c.allow(m.Content)
	}
	if c.calls != nil {
		c.allow(m.Call)
		if m.Name {
			c.allowName(chat.Moves{})
		}
	}
	if c.must || c.wantsContent() || c.calls != nil {
		c.allow(m.Next)
	}
	if !c.must && !c.wantsContent() {
		c.allow(m.End)
		c.allow(m.Leave)
	}
}

func (c *constraint) allowName(m chat.Moves) {
	if c.calls == nil {
		return
	}
	n := len(c.part)
	text := append(bytes.Clone(c.part), 0)
	var first [256]bool
	for b := range first {
		text[n] = byte(b)
		first[b], _ = c.calls.Name(text)
	}
	for id, piece := range c.pieces {
		if piece != nil && first[piece[0]] {
			if begins, _ := c.calls.Name(append(text[:n], piece...)); begins {
				c.bits[id/64] |= 1 << (id % 64)
			}
		}
	}
	if _, whole := c.calls.Name(c.part); whole {
		c.allow(m.Arguments)
	}
}

func (c *constraint) allowBody(m chat.Moves) {
	if c.body == nil {
		c.allowText()
		c.allow(m.Leave)
		return
	}
	copy(c.bits, c.body.Allowed())
	if c.body.CanEnd() {
		c.allow(m.Leave)
	}
}

// accept notes a token. before is the phase that it was generated in; the parser
// has seen it.
func (c *constraint) accept(id int32, before chat.Phase) error {
	if c.free() {
		return nil
	}
	after := c.parser.Phase()
	piece := c.pieces[id]
	matcher := c.matcher
	switch before {
	case chat.PhaseContent:
	case chat.PhaseCallArguments:
		matcher = c.body
	default:
		matcher = nil
	}
	if after == before && piece != nil && matcher != nil && !matcher.Accept(id) {
		return fmt.Errorf("token %d (%q) is not what the grammar allows", id, piece)
	}
	c.part = append(c.part, piece...)
	if before == after {
		return nil
	}
	if after == chat.PhaseCallArguments && c.calls != nil {
		if err := c.beginBody(); err != nil {
			return err
		}
	}
	if after != chat.PhaseCallName || before != chat.PhaseOpen { // a name may begin in no part
		c.part = nil
	}
	c.thought = c.thought || before == chat.PhaseReasoning
	c.said = c.said || before == chat.PhaseContent && after == chat.PhaseOpen && !c.must
	if before == chat.PhaseCallArguments {
		c.called, c.must, c.body = true, false, nil
	}
	return nil
}

// beginBody holds the call that begins to what its tool declares, or to an object
// where that can not be kept: validate has seen that it need not be.
func (c *constraint) beginBody() error {
	i := c.calls.Tool(c.part)
	if i < 0 {
		return fmt.Errorf("a call of %q, which is none of the tools", c.part)
	}
	g, err := c.bodies.of(c.calls, c.tools[i])
	if err != nil {
		g, err = c.bodies.of(c.calls, chat.Function{Name: c.tools[i].Name})
	}
	if err != nil {
		return fmt.Errorf("a call of %q: %w", c.part, err)
	}
	c.body = g.Matcher(c.tokens)
	return nil
}
