package server

import (
	"encoding/json"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

// The types of Ollama's routes for answers. What they have no field for is
// ignored, as Ollama does; docs/api.md has the table.

// ollamaCommon is what /api/chat and /api/generate have in common.
type ollamaCommon struct {
	Model       string         `json:"model"`
	Stream      *bool          `json:"stream"` // true if absent
	Format      ollamaFormat   `json:"format"`
	KeepAlive   keepAliveField `json:"keep_alive"`
	Options     ollamaOptions  `json:"options"`
	Think       ollamaThink    `json:"think"`
	Tools       []toolField    `json:"tools"`
	Logprobs    *bool          `json:"logprobs"`
	TopLogprobs *int           `json:"top_logprobs"`
}

// ollamaChatRequest is the body of /api/chat.
type ollamaChatRequest struct {
	ollamaCommon
	Messages []ollamaMessage `json:"messages"`
}

// ollamaGenerateRequest is the body of /api/generate.
type ollamaGenerateRequest struct {
	ollamaCommon
	Prompt string      `json:"prompt"`
	System string      `json:"system"` // in place of the model's
	Images ollamaMedia `json:"images"`
	Audio  ollamaMedia `json:"audio"` // not Ollama's
	Raw    bool        `json:"raw"`

	// Refused by name.
	Suffix   string          `json:"suffix"`
	Template string          `json:"template"`
	Context  json.RawMessage `json:"context"`
	Width    int             `json:"width"`
	Height   int             `json:"height"`
	Steps    int             `json:"steps"`
}

// ollamaMessage is a message of a conversation.
type ollamaMessage struct {
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	Thinking   string          `json:"thinking"`
	Images     ollamaMedia     `json:"images"`
	Audio      ollamaMedia     `json:"audio"` // not Ollama's
	ToolCalls  []toolCallField `json:"tool_calls"`
	ToolName   string          `json:"tool_name"`
	ToolCallID string          `json:"tool_call_id"`
}

// ollamaOptions are the options of a request. Those about how a model is loaded,
// and num_keep, are ignored; see docs/api.md.
type ollamaOptions struct {
	Temperature      *float64   `json:"temperature"`
	TopK             *int       `json:"top_k"`
	TopP             *float64   `json:"top_p"`
	MinP             *float64   `json:"min_p"`
	RepeatPenalty    *float64   `json:"repeat_penalty"`
	RepeatLastN      *int       `json:"repeat_last_n"`
	PresencePenalty  *float64   `json:"presence_penalty"`
	FrequencyPenalty *float64   `json:"frequency_penalty"`
	Seed             *int64     `json:"seed"`
	Stop             stringList `json:"stop"`
	NumPredict       *int       `json:"num_predict"`
	NumCtx           *int       `json:"num_ctx"`

	// Refused by name unless they say what they say by default.
	TypicalP *float64 `json:"typical_p"`
	TFSZ     *float64 `json:"tfs_z"`
	Mirostat *int     `json:"mirostat"`
}

// ollamaReply is a line of an answer, or all of it.
type ollamaReply struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`

	Message     *ollamaAnswer `json:"message,omitempty"` // of /api/chat
	*ollamaText               // of /api/generate

	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason,omitempty"`
	Logprobs   []ollamaLogprob `json:"logprobs,omitempty"`
	ollamaTimes
}

// ollamaAnswer is an assistant's message, or a piece of one.
type ollamaAnswer struct {
	Role      string           `json:"role"`
	Content   string           `json:"content"`
	Thinking  string           `json:"thinking,omitempty"`
	ToolCalls []ollamaToolCall `json:"tool_calls,omitempty"`
}

// ollamaText is the same of /api/generate.
type ollamaText struct {
	Response  string           `json:"response"`
	Thinking  string           `json:"thinking,omitempty"`
	ToolCalls []ollamaToolCall `json:"tool_calls,omitempty"`
}

// ollamaToolCall is a call, whose arguments are an object.
type ollamaToolCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func ollamaCallOf(index int, c chat.ToolCall) ollamaToolCall {
	call := ollamaToolCall{ID: c.ID}
	call.Function.Index, call.Function.Name, call.Function.Arguments = index, c.Name, objectOf(c.Arguments)
	return call
}

// ollamaLogprob is a token with its log-probability.
type ollamaLogprob struct {
	topLogprobJSON
	Top []topLogprobJSON `json:"top_logprobs,omitempty"`
}

// ollamaTimes are what an answer took, in nanoseconds and tokens.
type ollamaTimes struct {
	TotalDuration      time.Duration `json:"total_duration,omitempty"`
	LoadDuration       time.Duration `json:"load_duration,omitempty"`
	PromptEvalCount    int           `json:"prompt_eval_count,omitempty"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration,omitempty"`
	EvalCount          int           `json:"eval_count,omitempty"`
	EvalDuration       time.Duration `json:"eval_duration,omitempty"`
}
