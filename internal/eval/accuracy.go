package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// Accuracy is how many questions of a set were answered as expected.
type Accuracy struct {
	Count   int     `json:"count"`
	Right   int     `json:"right"`
	Share   float64 `json:"accuracy"`
	Error   float64 `json:"standard_error"` // of the share, by the binomial distribution
	Skipped int     `json:"skipped"`        // media that the model has no projector for
	Tasks   []Task  `json:"tasks"`          // in the order of the set
	Wrong   []Wrong `json:"wrong"`
}

// Task is the part of a set with one name.
type Task struct {
	Name  string `json:"task"`
	Count int    `json:"count"`
	Right int    `json:"right"`
}

// Wrong is an answer that was not expected.
type Wrong struct {
	ID   string `json:"id"`
	Task string `json:"task"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Answer asks the questions of a set one after another, each for the most likely
// tokens. Media are found from the folder dir. progress, which may be nil, is told
// after each question. When ctx ends, what was counted until then is returned with
// the error.
func Answer(ctx context.Context, e *engine.Engine, items []Item, dir string, progress func(done, right int)) (*Accuracy, error) {
	a := &Accuracy{Tasks: []Task{}, Wrong: []Wrong{}}
	defer a.finish()
	for i := range items {
		it := &items[i]
		r, err := it.request(dir)
		if err != nil {
			return a, fmt.Errorf("question %s: %w", it.ID, err)
		}
		res, err := e.Generate(ctx, r)
		switch {
		case errors.Is(err, engine.ErrNoProjector) || err != nil && !it.takes(e):
			a.Skipped++
			continue
		case err != nil:
			return a, fmt.Errorf("question %s: %w", it.ID, err)
		}
		a.count(it, res)
		if progress != nil {
			progress(i+1, a.Right)
		}
	}
	return a, nil
}

// takes reports whether the model has a projector for the media of the question.
func (it *Item) takes(e *engine.Engine) bool {
	conv, err := it.conversation()
	if err != nil {
		return true
	}
	for _, p := range conv.Media() {
		if p.Kind == chat.Image && !e.HasImage() || p.Kind == chat.Audio && !e.HasAudio() || p.Kind == chat.Video && !e.HasVideo() {
			return false
		}
	}
	return true
}

func (it *Item) request(dir string) (*engine.Request, error) {
	conv, err := it.conversation()
	if err != nil {
		return nil, err
	}
	n := it.MaxTokens
	if n == 0 {
		n = DefaultMaxTokens
	}
	return &engine.Request{
		Conversation:  conv,
		Chat:          chat.Options{Effort: it.effort(), AddGenerationPrompt: true},
		Sampling:      engine.Sampling{TopP: 1, RepeatPenalty: 1},
		MaxTokens:     n,
		ParallelCalls: true,
		Load:          engine.LoadLocal(dir),
		Local:         engine.LocalPaths(dir),
		Video:         engine.VideoSampling{Layout: it.VideoLayout},
	}, nil
}

// count takes an answer in.
func (a *Accuracy) count(it *Item, res *engine.Result) {
	i := slices.IndexFunc(a.Tasks, func(t Task) bool { return t.Name == it.Task })
	if i < 0 {
		i = len(a.Tasks)
		a.Tasks = append(a.Tasks, Task{Name: it.Task})
	}
	a.Count++
	a.Tasks[i].Count++
	if it.right(res.Text, res.ToolCalls) {
		a.Right++
		a.Tasks[i].Right++
		return
	}
	a.Wrong = append(a.Wrong, Wrong{it.ID, it.Task, it.want(), got(res.Text, res.ToolCalls)})
}

func (a *Accuracy) finish() {
	if a.Count > 0 {
		a.Share = float64(a.Right) / float64(a.Count)
		a.Error = math.Sqrt(a.Share * (1 - a.Share) / float64(a.Count))
	}
}

// right compares an answer with what is expected: the text without space around it,
// and one call of the tool with equal arguments.
func (it *Item) right(text string, calls []chat.ToolCall) bool {
	if it.Expected != nil && strings.TrimSpace(text) != strings.TrimSpace(*it.Expected) {
		return false
	}
	if it.ExpectedCall == nil {
		return len(calls) == 0
	}
	return len(calls) == 1 && calls[0].Name == it.ExpectedCall.Name && sameJSON(calls[0].Arguments, it.ExpectedCall.Arguments)
}

// sameJSON compares values; the order of keys does not count. Nothing is an empty
// object.
func sameJSON(a, b json.RawMessage) bool {
	var values [2]any
	for i, data := range []json.RawMessage{a, b} {
		if len(data) == 0 || string(data) == "null" {
			data = json.RawMessage("{}")
		}
		if json.Unmarshal(data, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func (it *Item) want() string {
	if it.ExpectedCall != nil {
		return it.ExpectedCall.Name + string(it.ExpectedCall.Arguments)
	}
	return *it.Expected
}

func got(text string, calls []chat.ToolCall) string {
	parts := []string{}
	if text != "" {
		parts = append(parts, text)
	}
	for _, c := range calls {
		parts = append(parts, c.Name+string(c.Arguments))
	}
	return strings.Join(parts, " ")
}

// Dir is the folder that the paths of a set count from.
func Dir(set string) string { return filepath.Dir(set) }
