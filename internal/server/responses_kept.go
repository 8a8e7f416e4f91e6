package server

import (
	"slices"
	"sync"

	"github.com/inkling-go/inkling/internal/chat"
)

// Bounds of the responses that are kept for requests that go on from them.
const (
	maxKept      = 256
	maxKeptBytes = 128 << 20
)

// keptResponses are the last responses, in memory.
type keptResponses struct {
	mu    sync.Mutex
	all   []*keptResponse // the one used last at the end
	bytes int
}

// keptResponse is a response with the conversation until then, without its
// instructions, which are those of one request.
type keptResponse struct {
	response *responseJSON
	messages []chat.Message
	bytes    int
}

// keep adds a response and drops the oldest ones that are too many or too large.
func (k *keptResponses) keep(r *responseJSON, messages []chat.Message) {
	e := &keptResponse{response: r, messages: slices.Clip(messages), bytes: sizeOf(messages)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all, k.bytes = append(k.all, e), k.bytes+e.bytes
	for len(k.all) > maxKept || k.bytes > maxKeptBytes {
		k.bytes -= k.all[0].bytes
		k.all = slices.Delete(k.all, 0, 1)
	}
}

// sizeOf is about how much memory messages take. What they share with those of
// earlier responses is counted for each.
func sizeOf(messages []chat.Message) int {
	const perMessage = 256
	n := 0
	for _, m := range messages {
		n += perMessage + len(m.Reasoning)
		for _, p := range m.Content {
			n += len(p.Text) + len(p.Source)
		}
		for _, c := range m.ToolCalls {
			n += len(c.Arguments)
		}
	}
	return n
}

// find returns a response that is still there.
func (k *keptResponses) find(id string) (*keptResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.all, func(e *keptResponse) bool { return e.response.ID == id })
	if i < 0 {
		return nil, responseNotFound(id)
	}
	e := k.all[i]
	k.all = append(slices.Delete(k.all, i, i+1), e)
	return e, nil
}

// before returns the conversation that a request goes on from; none without an id.
func (k *keptResponses) before(id string) ([]chat.Message, error) {
	if id == "" {
		return nil, nil
	}
	e, err := k.find(id)
	if err != nil {
		bad := responseNotFound(id)
		bad.Param = "previous_response_id"
		return nil, bad
	}
	return e.messages, nil
}

func (k *keptResponses) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.all, func(e *keptResponse) bool { return e.response.ID == id }); i >= 0 {
		k.bytes -= k.all[i].bytes
		k.all = slices.Delete(k.all, i, i+1)
	}
}
