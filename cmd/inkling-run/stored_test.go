package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

func TestOpened(t *testing.T) {
	system := func(s string) chat.Message { return textMessage(chat.System, nil, s) }
	user := func(s string) chat.Message { return textMessage(chat.User, nil, s) }
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
	got := storedSampling(p, engine.Sampling{Seed: 3})
	want := engine.Sampling{
		Temperature: 0.25, TopP: 0.5, MinP: 0.125, TopK: 7, RepeatPenalty: 1.5, RepeatLastN: 32,
		PresencePenalty: 1, FrequencyPenalty: -1, Seed: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sampling (-want +got):\n%s", diff)
	}
	if got := storedSampling(store.Params{}, want); got != want {
		t.Errorf("sampling without parameters %+v, want %+v", got, want)
	}
}

func TestTimesForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", -time.Hour: "just now", 3 * time.Second: "3 seconds ago", 119 * time.Second: "119 seconds ago",
		5 * time.Hour: "5 hours ago", 36 * time.Hour: "36 hours ago", 10 * 24 * time.Hour: "10 days ago", 800 * 24 * time.Hour: "2 years ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "now", 90 * time.Second: "in 1m30s", 20 * 365 * 24 * time.Hour: "for ever",
	} {
		if got := until(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestProcessor(t *testing.T) {
	for _, tt := range []struct {
		size, vram int64
		want       string
	}{{100, 0, "CPU"}, {100, 100, "GPU"}, {100, 150, "GPU"}, {100, 25, "75% CPU, 25% GPU"}, {0, 0, "CPU"}} {
		if got := processor(loadedModel{Size: tt.size, SizeVRAM: tt.vram}); got != tt.want {
			t.Errorf("%d of %d is %q, want %q", tt.vram, tt.size, got, tt.want)
		}
	}
}
