package server

import "encoding/json"

// The types of OpenAI's API, as far as this server has it. What a request's types
// have no field for is ignored, as OpenAI's own server does; docs/api.md has the
// table.

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	samplingFields
	outputFields

	Messages            []chatMessage   `json:"messages"`
	Tools               []toolField     `json:"tools"`
	ToolChoice          toolChoiceField `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	ReasoningEffort     effortField     `json:"reasoning_effort"`
	ResponseFormat      *responseFormat `json:"response_format"`
	Grammar             *string         `json:"grammar"` // of llama.cpp's server: GBNF
	Regex               *string         `json:"regex"`   // of SGLang's
	Logprobs            *bool           `json:"logprobs"`
	TopLogprobs         *int            `json:"top_logprobs"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Modalities          []string        `json:"modalities"`

	// Refused by name.
	Functions    json.RawMessage `json:"functions"`
	FunctionCall json.RawMessage `json:"function_call"`
	Audio        json.RawMessage `json:"audio"`
	WebSearch    json.RawMessage `json:"web_search_options"`
}

// samplingFields are those of /v1/chat/completions and /v1/completions alike.
type samplingFields struct {
	Temperature      *float64           `json:"temperature"`
	TopP             *float64           `json:"top_p"`
	TopK             *int               `json:"top_k"`              // not OpenAI's
	MinP             *float64           `json:"min_p"`              // not OpenAI's
	RepeatPenalty    *float64           `json:"repeat_penalty"`     // not OpenAI's
	Repetition       *float64           `json:"repetition_penalty"` // the same with vLLM's name
	PresencePenalty  *float64           `json:"presence_penalty"`
	FrequencyPenalty *float64           `json:"frequency_penalty"`
	Seed             *int64             `json:"seed"`
	LogitBias        map[string]float64 `json:"logit_bias"`
}

// outputFields are those of both routes that say how much to answer and how.
type outputFields struct {
	Model         string     `json:"model"`
	MaxTokens     *int       `json:"max_tokens"`
	N             *int       `json:"n"`
	Stop          stringList `json:"stop"`
	Stream        bool       `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// chatMessage is a message of a conversation.
type chatMessage struct {
	Role             string          `json:"role"`
	Content          contentField    `json:"content"`
	Name             string          `json:"name"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ToolCalls        []toolCallField `json:"tool_calls"`
	ToolCallID       string          `json:"tool_call_id"`
	FunctionCall     json.RawMessage `json:"function_call"` // refused by name
}

// contentPart is an element of a message's content.
type contentPart struct {
	Type       string   `json:"type"`
	Text       *string  `json:"text"`
	Refusal    string   `json:"refusal"`
	ImageURL   urlField `json:"image_url"`
	AudioURL   urlField `json:"audio_url"` // vLLM's
	VideoURL   urlField `json:"video_url"` // vLLM's
	InputAudio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File struct {
		FileData string `json:"file_data"`
		FileID   string `json:"file_id"`
		Filename string `json:"filename"`
	} `json:"file"`
	FPS       *float64 `json:"fps"`        // of a video: frames a second to look at
	NumFrames *int     `json:"num_frames"` // of a video: frames to look at
}

// responseFormat is the form that the answer must have.
type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict *bool           `json:"strict"`
	} `json:"json_schema"`
	Schema json.RawMessage `json:"schema"` // of json_object: llama.cpp's
}

// chatResponse is an answer, and with deltas in place of messages a piece of one.
type chatResponse struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`
	Created           int64        `json:"created"`
	Model             string       `json:"model"`
	SystemFingerprint string       `json:"system_fingerprint"`
	Choices           []chatChoice `json:"choices"`
	Usage             *usageField  `json:"usage,omitempty"`
}

// chatChoice is one of the answers.
type chatChoice struct {
	Index        int           `json:"index"`
	Message      *chatAnswer   `json:"message,omitempty"`
	Delta        *chatAnswer   `json:"delta,omitempty"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// chatAnswer is an assistant's message, or a piece of one.
type chatAnswer struct {
	Role             string         `json:"role,omitempty"`
	Content          nullableText   `json:"content,omitzero"`
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCallJSON `json:"tool_calls,omitempty"`
}

// toolCallJSON is a tool call of an answer, or a piece of one.
type toolCallJSON struct {
	Index    *int             `json:"index,omitempty"` // of a piece
	ID       string           `json:"id,omitempty"`
	Type     string           `json:"type,omitempty"`
	Function toolFunctionJSON `json:"function"`
}

type toolFunctionJSON struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// chatLogprobs are the tokens of a message, or of a piece of one.
type chatLogprobs struct {
	Content []tokenLogprobJSON `json:"content"`
	Refusal *struct{}          `json:"refusal"` // always null
}

type tokenLogprobJSON struct {
	topLogprobJSON
	Top []topLogprobJSON `json:"top_logprobs"`
}

type topLogprobJSON struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // not []byte, which would be base64
}

// usageField counts tokens.
type usageField struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	TotalTokens         int `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// openAI is the usage in OpenAI's words.
func (u usage) openAI() *usageField {
	f := &usageField{PromptTokens: u.Prompt, CompletionTokens: u.Generated, TotalTokens: u.Prompt + u.Generated}
	f.PromptTokensDetails.CachedTokens = u.Cached
	f.CompletionTokensDetails.ReasoningTokens = u.Reasoning
	return f
}
