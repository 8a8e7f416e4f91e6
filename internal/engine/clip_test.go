package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// frameLevel is the grey of frame i of the clips that are made here.
func frameLevel(i int) byte { return byte(10 + 5*i) }

// frames makes a folder of n numbered pictures.
func frames(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.bmp", i)), bmpSquare(frameLevel(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// greyFrame is the frame with a number, as frames makes it.
func greyFrame(t *testing.T, number string) *media.Image {
	t.Helper()
	i, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	im, err := media.DecodeImage(number, bmpSquare(frameLevel(i)), media.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestClipParts: a clip becomes an introduction, and a label and a picture for
// each pair of frames. The pairs and times follow from the sampling rule: n
// frames, made even, give n/2 pairs, at least two but for two frames, at
// anchors round(i(n-2)/(pairs-1)).
func TestClipParts(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	for _, c := range []struct {
		name   string
		frames int
		fps    float64 // of the part
		video  VideoSampling
		pairs  [][2]int
		times  []string
	}{
		{"one frame", 1, 0, VideoSampling{}, [][2]int{{0, 0}}, []string{"0.0"}},
		{"two frames", 2, 0, VideoSampling{}, [][2]int{{0, 1}}, []string{"0.0"}},
		{"odd", 3, 0, VideoSampling{}, [][2]int{{0, 1}, {2, 2}}, []string{"0.0", "1.0"}},
		{"rate of the part", 4, 8, VideoSampling{FPS: 1}, [][2]int{{0, 1}, {2, 3}}, []string{"0.0", "0.2"}},
		{"rate of the request", 4, 0, VideoSampling{FPS: 0.5}, [][2]int{{0, 1}, {2, 3}}, []string{"0.0", "4.0"}},
		{"fewer frames", 12, 0, VideoSampling{Frames: 7}, [][2]int{{0, 1}, {5, 6}, {10, 11}}, []string{"0.0", "2.5", "5.0"}},
		{"one pair", 12, 0, VideoSampling{Frames: 2}, [][2]int{{0, 1}}, []string{"0.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := local(chat.Part{Text: "before"}, chat.Part{Kind: chat.Video, Source: frames(t, c.frames), FPS: c.fps}, chat.Part{Text: "after"})
			r.Video = c.video
			conv, all := gather(t, e, r)
			want := []chat.Part{{Text: "before"}, {Text: "Here is a video as a sequence of frames in chronological order."}}
			for i, at := range c.times {
				want = append(want, chat.Part{Text: "frame at t=" + at + "s:"}, chat.Part{Kind: chat.Image, Source: fmt.Sprint(i)})
			}
			want = append(want, chat.Part{Text: "after"})
			if d := cmp.Diff(want, conv.Messages[0].Content); d != "" {
				t.Fatalf("parts (-want +got):\n%s", d)
			}
			for i, pair := range c.pairs {
				checkPair(t, e, all[i], pair[0], pair[1])
			}
		})
	}
}

// checkPair compares a medium with two frames.
func checkPair(t *testing.T, e *Engine, m *medium, a, b int) {
	t.Helper()
	want, err := e.proj.(models.PairProjector).EncodePair(nil, greyFrame(t, strconv.Itoa(a)), greyFrame(t, strconv.Itoa(b)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.vectors(nil)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, m.name, got, want, testutil.Tol{Abs: 1e-6})
}

// TestClipBudget: the clips of a conversation share 16 pairs, and there are 8 at most.
func TestClipBudget(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	clip := chat.Part{Kind: chat.Video, Source: frames(t, 40)}
	for clips, want := range map[int]int{1: 16, 2: 16, 3: 15, 7: 14, 8: 16} {
		r := local()
		r.Conversation.Messages = nil
		for range clips {
			r.Conversation.Messages = append(r.Conversation.Messages, chat.Message{Role: chat.User, Content: []chat.Part{clip}})
		}
		if _, all := gather(t, e, r); len(all) != want {
			t.Errorf("%d clips: %d pairs, want %d", clips, len(all), want)
		}
	}
	_, err := e.CountTokens(context.Background(), local(slices.Repeat([]chat.Part{clip}, 9)...))
	if err == nil || !strings.Contains(err.Error(), "has 9 clips, at most 8") {
		t.Errorf("9 clips: error %v", err)
	}
}
