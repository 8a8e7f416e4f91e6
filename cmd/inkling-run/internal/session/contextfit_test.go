package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
)

func TestWithoutOldest(t *testing.T) {
	roles := func(s string) []chat.Message {
		var list []chat.Message
		for _, r := range s {
			list = append(list, chat.Message{Role: map[rune]string{'s': chat.System, 'u': chat.User, 'a': chat.Assistant, 't': chat.ToolRole}[r]})
		}
		return list
	}
	for _, tc := range []struct {
		in, want string
		ok       bool
	}{
		{"", "", false},
		{"s", "s", false},
		{"su", "su", false},
		{"sua", "sua", false},
		{"uau", "u", true},
		{"ssuatauau", "ssuau", true},
		{"auau", "uau", true}, // an example, or what is left of a turn
	} {
		got, ok := withoutOldest(roles(tc.in))
		if d := cmp.Diff(roles(tc.want), got[:len(got):len(got)]); d != "" && len(got)+len(tc.want) > 0 || ok != tc.ok {
			t.Errorf("%s: ok %v (-want +got):\n%s", tc.in, ok, d)
		}
	}
}
