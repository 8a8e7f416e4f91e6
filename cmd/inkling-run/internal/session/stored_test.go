package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

func TestOpened(t *testing.T) {
	system := func(s string) chat.Message { return conversation.TextMessage(chat.System, nil, s) }
	user := func(s string) chat.Message { return conversation.TextMessage(chat.User, nil, s) }
	m := &store.Model{System: "model's", Messages: []store.Message{{Role: chat.System, Content: "more"}, {Role: chat.User, Content: "example"}}}
	for _, tt := range []struct {
		name      string
		m         *store.Model
		own, want []chat.Message
	}{
		{"all of the model's", m, []chat.Message{user("hi")}, []chat.Message{system("model's"), system("more"), user("example"), user("hi")}},
		{"its own system message", m, []chat.Message{system("own"), user("hi")}, []chat.Message{system("own"), user("example"), user("hi")}},
		{"a system message later on", m, []chat.Message{user("hi"), system("own")}, []chat.Message{user("example"), user("hi"), system("own")}},
		{"nothing yet", m, nil, []chat.Message{system("model's"), system("more"), user("example")}},
		{"a model with nothing", &store.Model{}, []chat.Message{user("hi")}, []chat.Message{user("hi")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, opened(tt.m, tt.own)); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoredSampling(t *testing.T) {
	var p store.Params
	for name, text := range map[string]string{
		"temperature": "0.25", "top_p": "0.5", "min_p": "0.125", "top_k": "7", "repeat_penalty": "1.5", "repeat_last_n": "32",
		"presence_penalty": "1", "frequency_penalty": "-1",
	} {
		if err := p.Set(name, text); err != nil {
			t.Fatal(err)
		}
	}
	got := StoredSampling(p, engine.Sampling{Seed: 3})
	want := engine.Sampling{
		Temperature: 0.25, TopP: 0.5, MinP: 0.125, TopK: 7, RepeatPenalty: 1.5, RepeatLastN: 32,
		PresencePenalty: 1, FrequencyPenalty: -1, Seed: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sampling (-want +got):\n%s", diff)
	}
	if got := StoredSampling(store.Params{}, want); got != want {
		t.Errorf("sampling without parameters %+v, want %+v", got, want)
	}
}
