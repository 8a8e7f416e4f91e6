package conversation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
)

// TestConversationRoundTrip writes conversations and reads them again.
func TestConversationRoundTrip(t *testing.T) {
	text := func(s string) []chat.Part { return []chat.Part{{Kind: chat.Text, Text: s}} }
	want := chat.Conversation{
		Messages: []chat.Message{
			{Role: chat.System, Content: text("a <b> & \"c\"\n中")},
			{Role: chat.User, List: true, Content: []chat.Part{
				{Kind: chat.Image, Source: "/a b.png"},
				{Kind: chat.Audio, Source: "http://host/x.wav"},
				{Kind: chat.Video, Source: "/clip", FPS: 2.5, Frames: 7},
				{Kind: chat.Text, Text: "look"},
			}},
			{Role: chat.Assistant, Reasoning: "hm", ToolCalls: []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: json.RawMessage(`{"x": 1.0}`)}}},
			{Role: chat.ToolRole, ToolCallID: "call_1", Name: "f", Content: text("done")},
			{Role: chat.ToolRole, Result: json.RawMessage(`{"x":1}`)},
			{Role: chat.Assistant, Content: text("bye")},
		},
		Tools: []chat.Tool{json.RawMessage(`{"name":"f"}`)},
	}
	var b strings.Builder
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := chat.ParseMessages([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v in %s", err, &b)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRebased(t *testing.T) {
	conv := chat.Conversation{Messages: []chat.Message{{Role: chat.User, List: true, Content: []chat.Part{
		{Kind: chat.Image, Source: "a.png"},
		{Kind: chat.Image, Source: "/a.png"},
		{Kind: chat.Image, Source: "../a.png"},
		{Kind: chat.Image, Source: "http://host/a.png"},
		{Kind: chat.Image, Source: "data:image/png;base64,AA"},
		{Kind: chat.Image},
		{Kind: chat.Text, Text: "a.png"},
	}}}}
	got, err := Rebased(conv, "/dir/sub")
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, p := range got.Messages[0].Content {
		sources = append(sources, p.Source)
	}
	want := []string{"/dir/sub/a.png", "/a.png", "/dir/a.png", "http://host/a.png", "data:image/png;base64,AA", "", ""}
	if d := cmp.Diff(want, sources); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if conv.Messages[0].Content[0].Source != "a.png" {
		t.Error("the conversation itself is changed")
	}
}
