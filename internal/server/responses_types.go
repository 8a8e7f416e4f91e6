package server

import "encoding/json"

// The types of OpenAI's responses API, as far as this server has it. What a
// request's types have no field for is ignored; docs/api.md has the table.

// responsesRequest is the body of /v1/responses.
type responsesRequest struct {
	Model              string              `json:"model"`
	Input              responsesInput      `json:"input"`
	Instructions       string              `json:"instructions"`
	PreviousResponseID string              `json:"previous_response_id"`
	Store              *bool               `json:"store"` // true if absent
	Stream             bool                `json:"stream"`
	Tools              []responsesTool     `json:"tools"`
	ToolChoice         responsesToolChoice `json:"tool_choice"`
	ParallelToolCalls  *bool               `json:"parallel_tool_calls"`
	MaxOutputTokens    *int                `json:"max_output_tokens"`
	Temperature        *float64            `json:"temperature"`
	TopP               *float64            `json:"top_p"`
	TopLogprobs        *int                `json:"top_logprobs"`
	Include            []string            `json:"include"`
	Metadata           map[string]string   `json:"metadata"`
	Truncation         string              `json:"truncation"`
	User               string              `json:"user"`
	Reasoning          struct {
		Effort effortField `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format *responsesFormat `json:"format"`
	} `json:"text"`

	// Refused by name.
	Background   bool            `json:"background"`
	Conversation json.RawMessage `json:"conversation"`
	Prompt       json.RawMessage `json:"prompt"`
}

// responsesFormat is the form that the answer must have.
type responsesFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// responsesItem is an element of the input.
type responsesItem struct {
	Type    string           `json:"type"`
	Role    string           `json:"role"`
	Content responsesContent `json:"content"`

	CallID    string           `json:"call_id"` // of function_call and function_call_output
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments"`
	Output    responsesContent `json:"output"`

	Summary responsesContent `json:"summary"` // of reasoning
}

// responsesPart is an element of a content.
type responsesPart struct {
	contentPart
	FileData string `json:"file_data"`
	FileID   string `json:"file_id"`
	FileURL  string `json:"file_url"`
	Detail   string `json:"detail"`
}

// responseJSON is an answer.
type responseJSON struct {
	ID                 string             `json:"id"`
	Object             string             `json:"object"`
	CreatedAt          int64              `json:"created_at"`
	CompletedAt        *int64             `json:"completed_at"`
	Status             string             `json:"status"`
	Background         bool               `json:"background"`
	Error              *responseError     `json:"error"`
	IncompleteDetails  *incompleteDetails `json:"incomplete_details"`
	Instructions       *string            `json:"instructions"`
	MaxOutputTokens    *int               `json:"max_output_tokens"`
	Metadata           map[string]string  `json:"metadata"`
	Model              string             `json:"model"`
	Output             []*responseItem    `json:"output"`
	ParallelToolCalls  bool               `json:"parallel_tool_calls"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Reasoning          responseReasoning  `json:"reasoning"`
	Store              bool               `json:"store"`
	Temperature        *float64           `json:"temperature"`
	Text               responseText       `json:"text"`
	ToolChoice         json.RawMessage    `json:"tool_choice"`
	Tools              []json.RawMessage  `json:"tools"`
	TopP               *float64           `json:"top_p"`
	TopLogprobs        int                `json:"top_logprobs"`
	Truncation         string             `json:"truncation"`
	Usage              *responseUsage     `json:"usage"`
	User               *string            `json:"user"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responseReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"` // always null: what the model thought is not summarised, it is there
}

type responseText struct {
	Format responsesFormat `json:"format"`
}

// responseItem is an element of the output. Which members it has, its type says.
type responseItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status,omitempty"`

	Role    string          `json:"role,omitempty"`
	Summary *[]struct{}     `json:"summary,omitempty"` // of reasoning: none
	Content *[]responsePart `json:"content,omitempty"` // of reasoning and message

	CallID    string  `json:"call_id,omitempty"` // of function_call
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// responsePart is the content of an item, one for each.
type responsePart struct {
	Type        string              `json:"type"`
	Text        string              `json:"text"`
	Annotations *[]struct{}         `json:"annotations,omitempty"` // of output_text: none
	Logprobs    *[]tokenLogprobJSON `json:"logprobs,omitempty"`    // of output_text
}

// responseUsage counts tokens.
type responseUsage struct {
	InputTokens        int `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int `json:"total_tokens"`
}

func (u usage) responses() *responseUsage {
	r := &responseUsage{InputTokens: u.Prompt, OutputTokens: u.Generated, TotalTokens: u.Prompt + u.Generated}
	r.InputTokensDetails.CachedTokens = u.Cached
	r.OutputTokensDetails.ReasoningTokens = u.Reasoning
	return r
}
