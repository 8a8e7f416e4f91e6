package chat

// Phase is the part of an answer that a parser is in.
type Phase int

// Phases of an answer.
const (
	PhaseOpen          Phase = iota // in no part, or between two
	PhaseReasoning                  // thinking
	PhaseContent                    // what the user reads
	PhaseCallName                   // the text that names the tool of a call
	PhaseCallArguments              // the body of a call
	PhaseEnded
)

// Moves are the control tokens that a well-formed answer may go on with, by what they do. The slices must not be changed.
type Moves struct {
	Reasoning []int32 // open a part of thinking
	Content   []int32 // open a part of content
	Call      []int32 // open a call, or the section of calls
	Name      bool    // text here is the name of a call, or its beginning
	Arguments []int32 // end the name of a call and begin its arguments
	Leave     []int32 // end the part, not the answer
	Next      []int32 // begin another part, of whatever kind
	End       []int32 // end the answer
}

// ids is a list of those ids that the vocabulary has.
func ids(list ...int32) []int32 {
	var have []int32
	for _, id := range list {
		if id != absent {
			have = append(have, id)
		}
	}
	return have
}

// Phase says where the answer is.
func (s *inklingParser) Phase() Phase {
	switch s.state {
	case inHead:
		if len(s.author) > 0 {
			return PhaseCallName
		}
		return PhaseOpen
	case inBody:
		switch s.body {
		case s.p.thinking:
			return PhaseReasoning
		case s.p.toolJSON:
			return PhaseCallArguments
		}
		return PhaseContent
	case between:
		return PhaseOpen
	}
	return PhaseEnded
}

// Moves says how the answer may go on.
func (s *inklingParser) Moves() Moves {
	switch s.state {
	case inHead:
		m := Moves{Name: true, Arguments: ids(s.p.toolJSON)}
		if len(s.author) == 0 {
			m.Reasoning, m.Content = ids(s.p.thinking), ids(s.p.text)
		}
		return m
	case inBody:
		return Moves{Leave: ids(s.p.endMessage)}
	case between:
		return Moves{Next: ids(s.p.model), End: ids(s.p.endSampling)}
	}
	return Moves{}
}

// Phase says where the answer is.
func (s *kimiParser) Phase() Phase {
	switch s.state {
	case kimiThinking:
		return PhaseReasoning
	case kimiTalking:
		return PhaseContent
	case kimiCallID:
		return PhaseCallName
	case kimiCallArguments:
		return PhaseCallArguments
	case kimiBetweenCalls:
		return PhaseOpen
	}
	return PhaseEnded
}

// Moves says how the answer may go on.
func (s *kimiParser) Moves() Moves {
	switch s.state {
	case kimiThinking:
		return Moves{Leave: ids(s.p.thinkEnd)}
	case kimiTalking:
		return Moves{Call: ids(s.p.sectionBegin), End: ids(s.p.end)}
	case kimiBetweenCalls:
		return Moves{Call: ids(s.p.callBegin), Leave: ids(s.p.sectionEnd)}
	case kimiCallID:
		return Moves{Name: true, Arguments: ids(s.p.callArguments)}
	case kimiCallArguments:
		return Moves{Leave: ids(s.p.callEnd)}
	}
	return Moves{}
}

// Phase is content until the end.
func (p *plainParser) Phase() Phase {
	if p.ended {
		return PhaseEnded
	}
	return PhaseContent
}

// Moves are the ends of the answer.
func (p *plainParser) Moves() Moves { return Moves{End: p.stop} }
