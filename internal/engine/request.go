package engine

import (
	"time"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/grammar"
)

// Request is one turn to generate.
type Request struct {
	Conversation chat.Conversation
	Chat         chat.Options
	Raw          bool    // take Prompt as it is, special tokens included, instead of the conversation
	Prompt       string  // of a raw request
	PromptIDs    []int32 // of a raw request, in place of Prompt

	Sampling  Sampling
	MaxTokens int               // 0: until the model stops or the context is full
	Stop      []string          // the content ends before the first of these; they are not part of it
	LogitBias map[int32]float32 // added to the logits of ids, whatever is sampled how

	Logprobs    bool // OnToken gets the log-probability of each token
	TopLogprobs int  // and those of so many most likely ones, 0 to 20

	// Grammar is what the content must be, after any reasoning. Nothing else is
	// said then but tool calls, unless ToolChoice forbids them.
	Grammar       *grammar.Grammar
	ToolChoice    ToolChoice
	ParallelCalls bool // false: the answer ends after its first tool call

	Load   Load  // fetches media; nil: media are an error
	Local  Local // finds clips in the file system; nil: they come by Load
	Limits MediaLimits
	Video  VideoSampling

	// OnDelta is called with each piece of the answer, OnToken with each token
	// that was generated, OnPrompt while the prompt is computed; each may be
	// nil. They run on the goroutine of Generate's caller. A token comes before
	// the pieces that it completes.
	OnDelta  func(chat.Delta) error
	OnToken  func(Token) error
	OnPrompt func(done, total int)
}

// Ways of ToolChoice.
const (
	ToolsAuto     = "auto"     // the model calls tools if it wants to; the empty mode too
	ToolsNone     = "none"     // it calls none
	ToolsRequired = "required" // it calls one at least
	ToolsFunction = "function" // it calls the one that is named
)

// ToolChoice says whether an answer calls tools.
type ToolChoice struct {
	Mode string
	Name string // of ToolsFunction
}

// TokenKind says which part of an answer a token belongs to.
type TokenKind int

// Kinds of tokens.
const (
	ContentToken TokenKind = iota
	ReasoningToken
	ToolToken    // of a tool call
	ControlToken // of the protocol, without text
)

// Token is a generated token.
type Token struct {
	ID    int32
	Piece []byte // its spelling, which may be a part of a character; shared, not to be changed
	Kind  TokenKind

	// Logprob is the natural logarithm of the probability that the model gave
	// the token before any setting of the request, Top those of the most likely
	// tokens, the best first.
	Logprob float32
	Top     []TokenLogprob
}

// TokenLogprob is a token that might have been generated.
type TokenLogprob struct {
	ID      int32
	Piece   []byte
	Logprob float32
}

// Reasons for the end of an answer, in OpenAI's words.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
)

// Result is a generated turn.
type Result struct {
	Text, Reasoning string
	ToolCalls       []chat.ToolCall
	Warnings        []string // what the model was not made for, and what it got wrong
	PromptIDs       []int32
	IDs             []int32 // generated, the stop token included
	FinishReason    string
	StopSequence    string // the one of Request.Stop that ended the content, if one did

	PromptTokens    int // rows of the prompt
	Cached          int // prompt rows that were there from requests before
	GeneratedTokens int

	Drafts Drafts // guesses at the answer

	Queued                   time.Duration // until the first step
	PromptTime, GenerateTime time.Duration
}
