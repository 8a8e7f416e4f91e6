package chat

import (
	"slices"
	"testing"
)

func TestAbilities(t *testing.T) {
	inkling := []string{tokMessageModel, tokText, tokEndMessage, tokToolJSON, tokThinking}
	kimi := []string{tokImAssistant, tokImEnd, tokSectionBegin, tokSectionEnd, tokCallBegin, tokCallArguments, tokCallEnd, tokThink, tokThinkEnd}
	for _, tt := range []struct {
		name            string
		tokens          []string
		tools, thinking bool
	}{
		{"inkling", inkling, true, true},
		{"kimi", kimi, true, true},
		{"kimi without thinking", kimi[:7], true, false},
		{"kimi with a part of the tokens of calls", append(slices.Clone(kimi[:4]), tokThink, tokThinkEnd), false, true},
		{"tokens of no protocol", kimi[2:], false, false},
		{"none", nil, false, false},
	} {
		tools, thinking := Abilities(func(s string) bool { return slices.Contains(tt.tokens, s) })
		if tools != tt.tools || thinking != tt.thinking {
			t.Errorf("%s: tools %t, thinking %t", tt.name, tools, thinking)
		}
	}
}
