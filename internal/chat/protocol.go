package chat

import (
	"fmt"

	"github.com/inkling-go/inkling/internal/token"
)

// Strings of Inkling's special tokens. Ids differ from vocabulary to vocabulary; the strings do not.
const (
	tokMessageUser   = "<|message_user|>"
	tokMessageModel  = "<|message_model|>"
	tokMessageSystem = "<|message_system|>"
	tokMessageTool   = "<|message_tool|>"
	tokText          = "<|content_text|>"
	tokThinking      = "<|content_thinking|>"
	tokImage         = "<|content_image|>"
	tokAudio         = "<|content_audio_input|>"
	tokAudioEnd      = "<|audio_end|>"
	tokXML           = "<|content_xml|>"
	tokXMLUnnamed    = "<|unused_200024|>" // tokXML in vocabularies that leave the slot unnamed
	tokToolError     = "<|content_tool_error|>"
	tokToolJSON      = "<|content_invoke_tool_json|>"
	tokToolText      = "<|content_invoke_tool_text|>"
	tokEndMessage    = "<|end_message|>"
	tokEndSampling   = "<|content_model_end_sampling|>"
	tokEndOfText     = "<|endoftext|>"
	tokImageSlot     = "<|unused_200054|>" // stands for one row of an image
	tokAudioSlot     = "<|unused_200053|>" // stands for one row of a sound
	tokMediaPad      = "<|media_pad|>"     // the same for images and clips in Kimi's vocabularies
)

// absent is the id of a token that the vocabulary does not have.
const absent int32 = -1

// protocol is Inkling's message protocol in the ids of a vocabulary. Tokens that not every model needs may be absent.
type protocol struct {
	user, model, system, tool      int32
	text, thinking, toolJSON       int32
	endMessage, endSampling        int32
	image, audio, audioEnd, xml    int32 // or absent
	imageSlot, audioSlot, endText  int32 // or absent
	toolText, toolError, xmlSecond int32 // or absent
}

// newProtocol finds the protocol's tokens; ok is false if the vocabulary lacks one that every prompt needs.
func newProtocol(v *token.Vocab) (p *protocol, ok bool) {
	id := func(s string) int32 {
		if id, ok := v.ID(s); ok {
			return id
		}
		return absent
	}
	p = &protocol{
		user: id(tokMessageUser), model: id(tokMessageModel), system: id(tokMessageSystem), tool: id(tokMessageTool),
		text: id(tokText), thinking: id(tokThinking), toolJSON: id(tokToolJSON),
		endMessage: id(tokEndMessage), endSampling: id(tokEndSampling),
		image: id(tokImage), audio: id(tokAudio), audioEnd: id(tokAudioEnd), xml: id(tokXML),
		imageSlot: id(tokImageSlot), audioSlot: id(tokAudioSlot), endText: id(tokEndOfText),
		toolText: id(tokToolText), toolError: id(tokToolError), xmlSecond: id(tokXMLUnnamed),
	}
	if p.xml == absent {
		p.xml, p.xmlSecond = p.xmlSecond, absent
	}
	for _, id := range []int32{
		p.user, p.model, p.system, p.tool, p.text, p.thinking, p.toolJSON, p.endMessage, p.endSampling,
	} {
		if id == absent {
			return nil, false
		}
	}
	return p, true
}

// StopIDs returns the ids that end the model's turn, found by their strings because re-saved configurations name wrong numbers:
// Inkling's end of sampling and end of text, Kimi's end of turn, and the vocabulary's own end of sequence. The end of a message
// inside a turn is not among them.
func StopIDs(v *token.Vocab) ([]int32, error) {
	var ids []int32
	for _, s := range []string{tokEndSampling, tokEndOfText, tokImEnd, tokKimiEOS} {
		if id, ok := v.ID(s); ok {
			ids = append(ids, id)
		}
	}
	if id, ok := v.EOS(); ok && len(ids) == 0 {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("vocabulary has neither %s nor an end-of-sequence token", tokEndSampling)
	}
	return ids, nil
}

// NeverSampled returns the ids that must never be generated, in ascending order: padding rows of the output matrix (ids from
// unpadded on, and unused entries) and the placeholders of media. An unpadded of 0 stands for the vocabulary's own used size.
func NeverSampled(v *token.Vocab, unpadded int) []int32 {
	if unpadded <= 0 {
		unpadded = v.Used()
	}
	var ids []int32
	placeholder, isPlaceholder := v.ID(videoPlaceholder)
	for i := range v.N() {
		id := int32(i)
		if i >= unpadded || v.Type(id) == token.Unused || isSlot(v, id) || isPlaceholder && id == placeholder {
			ids = append(ids, id)
		}
	}
	return ids
}

// SlotID returns the placeholder id that stands for one row of a medium of the kind.
func SlotID(v *token.Vocab, kind Kind) (id int32, ok bool) {
	for _, s := range mediaSlots {
		for _, k := range s.kinds {
			if k == kind {
				if id, ok := v.ID(s.token); ok {
					return id, true
				}
			}
		}
	}
	return 0, false
}

// mediaSlots are the placeholder tokens and the media they stand for.
var mediaSlots = []struct {
	token string
	kinds []Kind
}{
	{tokImageSlot, []Kind{Image}},
	{tokAudioSlot, []Kind{Audio}},
	{tokMediaPad, []Kind{Image, Video}},
}

// isSlot reports whether id is a placeholder of media.
func isSlot(v *token.Vocab, id int32) bool { return slotKinds(v, id) != nil }

// slotKinds returns the kinds of media that the placeholder id may stand for, nil if it is none.
func slotKinds(v *token.Vocab, id int32) []Kind {
	for _, s := range mediaSlots {
		if slot, ok := v.ID(s.token); ok && slot == id {
			return s.kinds
		}
	}
	return nil
}
