package server

import "encoding/json"

// The types of Anthropic's API, as far as this server has it. What a request's
// types have no field for is ignored; docs/api.md has the table.

// anthropicRequest is the body of /v1/messages.
type anthropicRequest struct {
	Model         string              `json:"model"`
	MaxTokens     *int                `json:"max_tokens"`
	System        anthropicContent    `json:"system"`
	Messages      []anthropicMessage  `json:"messages"`
	Tools         []anthropicTool     `json:"tools"`
	ToolChoice    anthropicToolChoice `json:"tool_choice"`
	Temperature   *float64            `json:"temperature"`
	TopP          *float64            `json:"top_p"`
	TopK          *int                `json:"top_k"`
	StopSequences []string            `json:"stop_sequences"`
	Stream        bool                `json:"stream"`

	Thinking struct {
		Type         string `json:"type"`
		BudgetTokens *int   `json:"budget_tokens"`
	} `json:"thinking"`
	OutputConfig struct {
		Effort effortField      `json:"effort"`
		Format *anthropicFormat `json:"format"`
	} `json:"output_config"`
	OutputFormat *anthropicFormat `json:"output_format"` // the same of earlier clients

	// Refused by name.
	Container  json.RawMessage   `json:"container"`
	MCPServers []json.RawMessage `json:"mcp_servers"`
}

// anthropicFormat is the form that the answer must have.
type anthropicFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// anthropicMessage is a message of a conversation.
type anthropicMessage struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicBlock is an element of a message's content, or of a tool's result.
type anthropicBlock struct {
	Type   string  `json:"type"`
	Text   *string `json:"text"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`

	Thinking string `json:"thinking"`

	ID    string          `json:"id"` // of tool_use
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string           `json:"tool_use_id"` // of tool_result
	Content   anthropicContent `json:"content"`
}

// anthropicToolChoice says whether tools are called.
type anthropicToolChoice struct {
	Type            string `json:"type"`
	Name            string `json:"name"`
	DisableParallel bool   `json:"disable_parallel_tool_use"`
}

// anthropicResponse is an answer.
type anthropicResponse struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicPiece `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        anthropicUsage   `json:"usage"`
}

// anthropicPiece is a block of an answer. Which members it has, its type says.
type anthropicPiece struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// anthropicUsage counts tokens. Those of the prompt are input_tokens, unless they
// were there from requests before.
type anthropicUsage struct {
	InputTokens         int `json:"input_tokens"`
	CacheCreationTokens int `json:"cache_creation_input_tokens"` // always 0: nothing is charged
	CacheReadTokens     int `json:"cache_read_input_tokens"`
	OutputTokens        int `json:"output_tokens"`
}

func (u usage) anthropic() anthropicUsage {
	return anthropicUsage{InputTokens: u.Prompt - u.Cached, CacheReadTokens: u.Cached, OutputTokens: u.Generated}
}
