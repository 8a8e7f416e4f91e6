package session

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/engine"
)

// Result is what --json prints. Names and shapes are those of OpenAI's chat
// completions and, for timings, of llama.cpp's server.
type Result struct {
	Text           string                  `json:"text"`
	Reasoning      string                  `json:"reasoning"`
	ToolCalls      []conversation.ToolCall `json:"tool_calls"`
	TokenIDs       []int32                 `json:"token_ids"` // generated, the one that ended the turn included
	PromptTokenIDs []int32                 `json:"prompt_token_ids"`
	FinishReason   string                  `json:"finish_reason"`
	Usage          tokenUsage              `json:"usage"`
	Timings        timings                 `json:"timings"`
	Seed           uint64                  `json:"seed"`

	Messages    []conversation.Message `json:"messages,omitempty"` // that were added, with --tool-exec
	Devices     []string               `json:"devices,omitempty"`  // that the model is on, the main one first
	GraphSplits int                    `json:"graph_splits,omitempty"`

	ExpertHitRate *float64 `json:"expert_hit_rate,omitempty"` // of a model larger than memory: the share of experts that was in memory when it was chosen
}

type tokenUsage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    promptDetails `json:"prompt_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// timings has milliseconds and tokens per second. Prompt tokens that were
// cached count in neither.
type timings struct {
	LoadMS             float64 `json:"load_ms"`
	PromptMS           float64 `json:"prompt_ms"`
	PromptPerSecond    float64 `json:"prompt_per_second"`
	PredictedMS        float64 `json:"predicted_ms"`
	PredictedPerSecond float64 `json:"predicted_per_second"`

	// Guesses of tokens: all that were checked, those that were right, and both by
	// how far ahead they were. Absent if there were none.
	DraftN        int          `json:"draft_n,omitempty"`
	DraftAccepted int          `json:"draft_n_accepted,omitempty"`
	DraftByDepth  []draftDepth `json:"draft_by_depth,omitempty"`

	prompt, cached, predicted int // tokens
}

// draftDepth counts the guesses at the same distance.
type draftDepth struct {
	Drafted  int `json:"drafted"`
	Accepted int `json:"accepted"`
}

// NewResult describes the last answer of a session.
func NewResult(res *engine.Result, s *Session) Result {
	r := Result{
		Text: res.Text, Reasoning: res.Reasoning, ToolCalls: conversation.ToolCalls(res.ToolCalls),
		TokenIDs: res.IDs, PromptTokenIDs: res.PromptIDs,
		FinishReason: res.FinishReason,
		Usage: tokenUsage{
			PromptTokens: len(res.PromptIDs), CompletionTokens: len(res.IDs), TotalTokens: len(res.PromptIDs) + len(res.IDs),
			PromptDetails: promptDetails{res.Cached},
		},
		Timings: timingsOf(res, s.load),
		Seed:    s.Settings.Seed,
	}
	if s.ShowSpecial {
		r.Text, r.Reasoning = s.Engine.Spell(res.IDs), ""
	}
	return r
}

// AddDevices notes where the answer was computed.
func (r *Result) AddDevices(ctx context.Context, e *engine.Engine) (err error) {
	for _, d := range e.Choice().Devices {
		r.Devices = append(r.Devices, d.Name())
	}
	if reads := e.Stats().Reads; reads.Chosen > 0 {
		rate := reads.HitRate()
		r.ExpertHitRate = &rate
	}
	r.GraphSplits, err = e.Splits(ctx)
	return err
}

func timingsOf(res *engine.Result, load time.Duration) timings {
	t := timings{prompt: len(res.PromptIDs), cached: res.Cached, predicted: len(res.IDs)}
	t.LoadMS = milliseconds(load)
	t.PromptMS, t.PromptPerSecond = milliseconds(res.PromptTime), perSecond(t.prompt-t.cached, res.PromptTime)
	t.PredictedMS, t.PredictedPerSecond = milliseconds(res.GenerateTime), perSecond(t.predicted, res.GenerateTime)
	for d, n := range res.Drafts.Drafted {
		right := res.Drafts.Accepted[d]
		t.DraftN, t.DraftAccepted = t.DraftN+n, t.DraftAccepted+right
		t.DraftByDepth = append(t.DraftByDepth, draftDepth{n, right})
	}
	return t
}

// milliseconds keeps microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// String is the line of speeds for people.
func (t timings) String() string {
	cached := ""
	if t.cached > 0 {
		cached = fmt.Sprintf(" and %d cached", t.cached)
	}
	guesses := ""
	if t.DraftN > 0 {
		guesses = fmt.Sprintf(", %d of %d guesses right", t.DraftAccepted, t.DraftN)
	}
	return fmt.Sprintf("prompt: %d tokens, %.1f tok/s%s; answer: %d tokens, %.1f tok/s%s; load: %.0f ms",
		t.prompt-t.cached, t.PromptPerSecond, cached, t.predicted, t.PredictedPerSecond, guesses, t.LoadMS)
}

// PrintResult writes it as one line of JSON.
func PrintResult(w io.Writer, r Result) error { return report.JSON(w, r) }
