package chat

// Abilities says what the protocol of a vocabulary can express: calls of tools,
// and thinking apart from the answer. It is for lists of models, which do not load
// them; has reports whether the vocabulary has a special token.
func Abilities(has func(string) bool) (tools, thinking bool) {
	all := func(tokens ...string) bool {
		for _, t := range tokens {
			if !has(t) {
				return false
			}
		}
		return true
	}
	if all(tokMessageModel, tokText, tokEndMessage) {
		return has(tokToolJSON), has(tokThinking)
	}
	if all(tokImAssistant, tokImEnd) {
		return all(tokSectionBegin, tokSectionEnd, tokCallBegin, tokCallArguments, tokCallEnd), all(tokThink, tokThinkEnd)
	}
	return false, false
}
