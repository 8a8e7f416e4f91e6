package flags

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
)

func TestMediaPart(t *testing.T) {
	for _, c := range []struct {
		kind   chat.Kind
		source string
		want   chat.Part
		err    string
	}{
		{chat.Image, "a.png", chat.Part{Kind: chat.Image, Source: "a.png"}, ""},
		{chat.Image, "a.png:fps=2", chat.Part{Kind: chat.Image, Source: "a.png:fps=2"}, ""},
		{chat.Video, "a.mp4", chat.Part{Kind: chat.Video, Source: "a.mp4"}, ""},
		{chat.Video, "a.mp4:fps=0.5", chat.Part{Kind: chat.Video, Source: "a.mp4", FPS: 0.5}, ""},
		{chat.Video, "a:fps=1:fps=30", chat.Part{Kind: chat.Video, Source: "a:fps=1", FPS: 30}, ""},
		{chat.Video, "a.mp4:frames=8", chat.Part{Kind: chat.Video, Source: "a.mp4", Frames: 8}, ""},
		{chat.Video, "a.mp4:frames=8:fps=3", chat.Part{Kind: chat.Video, Source: "a.mp4", FPS: 3, Frames: 8}, ""},
		{chat.Video, "c:/a.mp4:fps=3:frames=8", chat.Part{Kind: chat.Video, Source: "c:/a.mp4", FPS: 3, Frames: 8}, ""},
		{chat.Video, "http://h/a:frames=x", chat.Part{}, `http://h/a: frames "x"`},
		{chat.Video, "a.mp4:frames=0", chat.Part{}, `a.mp4: frames "0"`},
		{chat.Video, "a.mp4:fps=", chat.Part{}, `a.mp4: fps ""`},
		{chat.Video, "a.mp4:fps=NaN", chat.Part{}, `fps "NaN"`},
		{chat.Video, "a.mp4:fps=Inf", chat.Part{}, `fps "Inf"`},
		{chat.Video, ":fps=3", chat.Part{}, "video: no file"},
		{chat.Audio, "", chat.Part{}, "audio: no file"},
	} {
		got, err := MediaPart(c.kind, c.source)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want one with %q", c.source, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.source, err, d)
		}
	}
}
