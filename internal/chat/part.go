package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// parsePart reads an element of a content list.
func parsePart(v any) (Part, error) {
	if s, ok := v.(string); ok {
		return Part{Kind: Text, Text: s}, nil
	}
	o, ok := v.(*object)
	if !ok {
		return Part{}, fmt.Errorf("is %s, want an object", jsonType(v))
	}
	kind, err := stringField(o, "type")
	if err != nil {
		return Part{}, err
	}
	switch kind {
	case "", "text", "input_text", "output_text":
		text, err := stringField(o, "text")
		return Part{Kind: Text, Text: text}, err
	case "image", "image_url", "input_image":
		return mediaPart(Image, kind, o)
	case "audio", "audio_url":
		return mediaPart(Audio, kind, o)
	case "input_audio":
		return inputAudio(o)
	case "video", "video_url", "input_video":
		p, err := mediaPart(Video, kind, o)
		if err != nil {
			return Part{}, err
		}
		if p.FPS, err = framesPerSecond(o.get("fps")); err != nil {
			return Part{}, err
		}
		p.Frames, err = frameCount(o)
		return p, err
	}
	return Part{}, fmt.Errorf("unknown type %q", kind)
}

// mediaPart reads where a medium comes from. The bare Hugging Face types ("image", …) may go without a source: their media are handed
// over beside the messages.
func mediaPart(kind Kind, name string, o *object) (Part, error) {
	p := Part{Kind: kind}
	for _, key := range []string{kind.String(), kind.String() + "_url", "url", "path", "base64"} {
		v := o.get(key)
		if link, ok := v.(*object); ok {
			v = link.get("url")
		}
		switch v := v.(type) {
		case nil:
			continue
		case string:
			p.Source = v
			if key == "base64" {
				p.Source = dataURL("", v)
			}
			return p, nil
		default:
			return Part{}, fmt.Errorf("%s is %s, want a string", key, jsonType(v))
		}
	}
	if name != kind.String() {
		return Part{}, fmt.Errorf("%s without a URL", name)
	}
	return p, nil
}

// inputAudio reads OpenAI's {"input_audio":{"data":…,"format":…}}, where data is base64 or already a data URL.
func inputAudio(o *object) (Part, error) {
	in, ok := o.get("input_audio").(*object)
	if !ok {
		return mediaPart(Audio, "input_audio", o)
	}
	data, err := stringField(in, "data")
	if err != nil {
		return Part{}, err
	}
	format, err := stringField(in, "format")
	if err != nil {
		return Part{}, err
	}
	if data == "" {
		return Part{}, errors.New("input_audio without data")
	}
	if format != "" {
		format = "audio/" + format
	}
	return Part{Kind: Audio, Source: dataURL(format, data)}, nil
}

// dataURL makes a data URL of base64 text, unless it is one.
func dataURL(mediaType, base64 string) string {
	if strings.HasPrefix(base64, "data:") {
		return base64
	}
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	return "data:" + mediaType + ";base64," + base64
}

// maxFrames bounds the frames that a request may ask for; models take some hundreds.
const maxFrames = 1 << 20

// frameCount reads how many frames of a clip to take, 0 if the part does not say.
func frameCount(o *object) (int, error) {
	for _, key := range []string{"num_frames", "nframes"} {
		v := o.get(key)
		if v == nil {
			continue
		}
		n, ok := v.(json.Number)
		if !ok {
			return 0, fmt.Errorf("%s is %s, want a number", key, jsonType(v))
		}
		f, err := n.Float64()
		if err != nil || f != math.Trunc(f) || f < 1 || f > maxFrames {
			return 0, fmt.Errorf("%s is %s, want a whole number from 1 to %d", key, n, maxFrames)
		}
		return int(f), nil
	}
	return 0, nil
}

func framesPerSecond(v any) (float64, error) {
	if v == nil {
		return 0, nil
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("fps is %s, want a number", jsonType(v))
	}
	f, err := n.Float64()
	if err != nil || f <= 0 || math.IsInf(f, 0) {
		return 0, fmt.Errorf("fps is %s, want a number above 0", n)
	}
	return f, nil
}
