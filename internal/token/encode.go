package token

import "fmt"

// SegmentKind says what a Segment holds.
type SegmentKind int

// Kinds of segments.
const (
	TextSegment    SegmentKind = iota // Text, in which special tokens are plain characters
	ControlSegment                    // one special token, ID
	MediaSegment                      // the rows of medium number Media
)

// Segment is a part of a prompt.
type Segment struct {
	Kind  SegmentKind
	Text  string
	ID    int32
	Media int // index into the media of the request
}

// Slot is a run of placeholder ids that the rows of a medium will replace.
type Slot struct {
	Media int // index into the media of the request
	Pos   int // index of the first placeholder in the prompt's ids
	N     int // number of placeholders, equal to the number of rows
}

// maxPrompt bounds the ids of a prompt, and maxSlots the placeholders of one medium; a prompt beyond it fits no model.
const (
	maxPrompt = 1 << 24
	maxSlots  = maxPrompt
)

// Encode returns the ids of plain text. It never returns a control or user-defined token, whatever the text spells,
// and Decode gives back every byte of it, UTF-8 or not.
func (v *Vocab) Encode(text string) []int32 {
	var w mergeWork
	return v.appendText(nil, text, &w)
}

func (v *Vocab) appendText(ids []int32, text string, w *mergeWork) []int32 {
	v.split.split(text, func(piece string) { ids = v.bpe.appendPiece(ids, piece, w) })
	return ids
}

// EncodeWithSpecial encodes text in which the strings of special tokens stand for these tokens. It is for prompts that
// are written out whole, never for text of a user.
func (v *Vocab) EncodeWithSpecial(text string) []int32 {
	var (
		ids []int32
		w   mergeWork
	)
	for _, s := range v.SplitSpecial(text) {
		if s.Kind == ControlSegment {
			ids = append(ids, s.ID)
		} else {
			ids = v.appendText(ids, s.Text, &w)
		}
	}
	return ids
}

// EncodeSegments returns the ids of a prompt and where its media go. Neighbouring text segments are joined before they are
// encoded. slots gives the placeholder id of a medium and how many rows it has; it may be nil without media.
func (v *Vocab) EncodeSegments(segs []Segment, slots func(media int) (id int32, n int)) ([]int32, []Slot, error) {
	return v.encodeSegments(segs, slots, maxPrompt)
}

// encodeSegments is EncodeSegments for prompts of at most limit tokens.
func (v *Vocab) encodeSegments(segs []Segment, slots func(media int) (id int32, n int), limit int) ([]int32, []Slot, error) {
	var (
		ids   []int32
		media []Slot
		w     mergeWork
		text  string
	)
	for i, s := range segs {
		if s.Kind == TextSegment {
			text += s.Text
			if i+1 < len(segs) && segs[i+1].Kind == TextSegment {
				continue
			}
			v.split.split(text, func(piece string) {
				if len(ids) <= limit {
					ids = v.bpe.appendPiece(ids, piece, &w)
				}
			})
			if len(ids) > limit {
				return nil, nil, fmt.Errorf("a prompt of more than %d tokens", limit)
			}
			text = ""
			continue
		}
		id, n := s.ID, 1
		if s.Kind == MediaSegment {
			if slots == nil {
				return nil, nil, fmt.Errorf("segment %d is medium %d, and no media were given", i, s.Media)
			}
			if id, n = slots(s.Media); n < 1 || n > maxSlots {
				return nil, nil, fmt.Errorf("medium %d takes %d tokens", s.Media, n)
			}
			media = append(media, Slot{Media: s.Media, Pos: len(ids), N: n})
		}
		if t := v.Type(id); t != Control && t != UserDefined {
			return nil, nil, fmt.Errorf("segment %d: id %d is not a special token", i, id)
		}
		if n > limit-len(ids) {
			return nil, nil, fmt.Errorf("a prompt of more than %d tokens", limit)
		}
		for range n {
			ids = append(ids, id)
		}
	}
	return ids, media, nil
}
