// Package chat turns conversations into prompts and generated tokens back into messages.
//
// A Renderer makes a list of token segments: control tokens stand where the renderer put them and nowhere else, whatever the
// texts of a conversation spell. Inkling's own protocol is rendered natively, any other model through its Jinja chat template.
// A Parser follows the generated ids and yields reasoning, content and tool calls.
package chat

import "encoding/json"

// Roles of messages. Developer counts as system.
const (
	System    = "system"
	Developer = "developer"
	User      = "user"
	Assistant = "assistant"
	ToolRole  = "tool"
)

// Conversation is what a prompt is made from.
type Conversation struct {
	Messages []Message
	Tools    []Tool
}

// Tool is the declaration of a tool as JSON: {"type":"function","function":{"name":…,"description":…,"parameters":…}} or the
// inner object alone.
type Tool = json.RawMessage

// Message is one turn of a conversation.
type Message struct {
	Role       string
	Content    []Part
	Reasoning  string     // of an assistant: what it thought before Content
	ToolCalls  []ToolCall // of an assistant: the calls it made after Content
	ToolCallID string     // of a tool: the call that this is the result of
	Name       string     // of a tool: its name; the call it answers tells it too

	// List says that the content was a list of parts and not a string; Jinja templates can tell the difference.
	List bool
	// Result is the content of a tool message that is neither a string nor null, as JSON. Content is empty then.
	Result json.RawMessage
}

// Kind is the kind of a Part.
type Kind int

// Kinds of parts.
const (
	Text Kind = iota
	Image
	Audio
	Video
)

func (k Kind) String() string {
	switch k {
	case Text:
		return "text"
	case Image:
		return "image"
	case Audio:
		return "audio"
	case Video:
		return "video"
	}
	return "unknown"
}

// Part is a piece of a message's content.
type Part struct {
	Kind   Kind
	Text   string  // of a Text part
	Source string  // of other parts: path, URL or data URL as given; empty when the medium comes by another way
	FPS    float64 // of a Video part: frames per second to sample, 0 for the default
	Frames int     // of a Video part: frames to sample, 0 for the default
	Field  string  // where a request has the part, "messages[0].content[1]", for errors; empty if it came by another way

	// Blocks is how a Video part is laid out in the prompt, known once it is loaded; nil for one block without a label. In the media
	// that a Renderer returns there is a part for each block, and Block is which.
	Blocks []Block
	Block  int
}

// ToolCall is a call that an assistant made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object in messages; whatever the model wrote in calls from a Parser
}
