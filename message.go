package inkling

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// Roles of messages.
const (
	RoleSystem    = chat.System
	RoleUser      = chat.User
	RoleAssistant = chat.Assistant
	RoleTool      = chat.ToolRole
)

// Message is one turn of a conversation.
type Message struct {
	Role       string     // one of the roles above
	Content    []Part     // in the order in which the model gets it
	Reasoning  string     // of an assistant: what it thought
	ToolCalls  []ToolCall // of an assistant
	ToolCallID string     // of a tool: the call that this is the result of
}

// Text is the text of the message's content.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Content {
		b.WriteString(p.part.Text)
	}
	return b.String()
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID        string          // for Message.ToolCallID
	Name      string          // of the function
	Arguments json.RawMessage // JSON, if the model wrote what it was asked to
}

// System returns a message that tells the model how to behave.
func System(text string) Message { return Message{Role: RoleSystem, Content: []Part{Text(text)}} }

// User returns a message of the user.
func User(parts ...Part) Message { return Message{Role: RoleUser, Content: parts} }

// ToolResult returns the message that answers a tool call.
func ToolResult(call ToolCall, result string) Message {
	return Message{Role: RoleTool, Content: []Part{Text(result)}, ToolCallID: call.ID}
}

// Part is a piece of a message: text or a medium.
type Part struct{ part chat.Part }

// Text returns a part of text. What it spells never becomes a control token.
func Text(text string) Part { return Part{chat.Part{Kind: chat.Text, Text: text}} }

// ImageFile returns a picture that is read from a path or an http(s) URL when the
// prompt is made: PNG, JPEG, WebP, GIF, BMP or TIFF.
func ImageFile(path string) Part { return Part{chat.Part{Kind: chat.Image, Source: path}} }

// AudioFile returns a sound that is read likewise: WAV, FLAC, Ogg Vorbis or MP3, what
// ffmpeg knows where that is installed, at any rate and number of channels.
func AudioFile(path string) Part { return Part{chat.Part{Kind: chat.Audio, Source: path}} }

// VideoFile returns a clip that is read likewise: an animation, a folder of numbered
// pictures or a pattern such as frame%03d.png, and what ffmpeg knows.
func VideoFile(path string) Part { return Part{chat.Part{Kind: chat.Video, Source: path}} }

// ImageData returns a picture of the bytes of a file.
func ImageData(data []byte) Part { return Part{chat.Part{Kind: chat.Image, Source: dataURL(data)}} }

// AudioData returns a sound of the bytes of a file.
func AudioData(data []byte) Part { return Part{chat.Part{Kind: chat.Audio, Source: dataURL(data)}} }

func dataURL(data []byte) string {
	return "data:" + http.DetectContentType(data) + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func conversation(messages []Message) chat.Conversation {
	c := chat.Conversation{Messages: make([]chat.Message, len(messages))}
	for i, m := range messages {
		to := chat.Message{Role: m.Role, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
		for _, p := range m.Content {
			to.Content = append(to.Content, p.part)
		}
		for _, call := range m.ToolCalls {
			to.ToolCalls = append(to.ToolCalls, chat.ToolCall(call))
		}
		c.Messages[i] = to
	}
	return c
}
