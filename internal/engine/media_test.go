package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// tone is a WAV file of n 16-bit samples.
func tone(n, rate int) []byte {
	b := []byte("RIFF....WAVEfmt ")
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(2*n))
	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(9000*math.Sin(2*math.Pi*440*float64(i)/float64(rate)))))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

func local(parts ...chat.Part) *Request {
	r := question("")
	r.Conversation.Messages[0].Content = parts
	r.Load, r.Local = LoadLocal("."), LocalPaths(".")
	return r
}

func gather(t testing.TB, e *Engine, r *Request) (chat.Conversation, []*medium) {
	t.Helper()
	c, all, err := e.gather(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return c, all
}

// TestMediaInTheirPlace holds a conversation of three turns with media of all
// kinds in any order, some twice. The rows at each slot are those of the medium
// that stands there in the conversation, and the answers are those of an engine
// that sees the whole conversation at once.
func TestMediaInTheirPlace(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	dev := testutil.Testdata(t, "inkling-tiny-eval")
	clip := frames(t, 3)
	sound := func(f string) chat.Part { return chat.Part{Kind: chat.Audio, Source: filepath.Join(dev, "media", f)} }
	picture := func(f string) chat.Part { return chat.Part{Kind: chat.Image, Source: filepath.Join(dev, "media", f)} }
	turns := [][]chat.Part{
		{sound("047.wav"), {Text: "Transcribe the speech."}, picture("000_0.png"), sound("048.wav")},
		{{Kind: chat.Video, Source: clip}, picture("001_0.png"), {Text: "Describe the picture."}, picture("000_0.png")},
		{picture("030_0.png"), sound("047.wav"), {Text: "Read the number."}},
	}
	want := [][]string{ // what the slots hold, turn by turn
		{"047.wav", "000_0.png", "048.wav"},
		{"0+1", "2+2", "001_0.png", "000_0.png"},
		{"030_0.png", "047.wav"},
	}
	hashes := map[string][sha256.Size]byte{}
	for _, names := range want {
		for _, name := range names {
			hashes[name] = hashRows(encodeAlone(t, e, filepath.Join(dev, "media"), name))
		}
	}
	if len(hashes) != 7 {
		t.Fatalf("%d media, want 7", len(hashes))
	}

	r := local()
	r.Conversation.Messages = nil
	var slots []string
	for i, parts := range turns {
		r.Conversation.Messages = append(r.Conversation.Messages, chat.Message{Role: chat.User, Content: parts})
		slots = append(slots, want[i]...)
		p, err := e.prompt(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		checkSlots(t, e, p, slots, hashes)

		res := generate(t, e, r)
		if i > 0 && res.Cached == 0 {
			t.Errorf("turn %d: nothing was kept", i)
		}
		fresh := generate(t, openTiny(t, "f32", binding.F32), r)
		if !slices.Equal(res.IDs, fresh.IDs) {
			t.Errorf("turn %d: answered %q, a fresh engine %q", i, res.Text, fresh.Text)
		}
		r.Conversation.Messages = append(r.Conversation.Messages, chat.Message{
			Role: chat.Assistant, Content: []chat.Part{{Text: res.Text}}, Reasoning: res.Reasoning, ToolCalls: res.ToolCalls,
		})
	}
}

// encodeAlone gives the rows of a file, or of the frames I+J of the clip,
// without the engine's own way to them.
func encodeAlone(t *testing.T, e *Engine, dir, name string) []float32 {
	t.Helper()
	var data []byte
	var err error
	a, b, pair := strings.Cut(name, "+")
	if !pair {
		if data, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var rows []float32
	switch {
	case pair:
		rows, err = e.proj.(models.PairProjector).EncodePair(nil, greyFrame(t, a), greyFrame(t, b))
	case filepath.Ext(name) == ".wav":
		a, aErr := media.DecodeAudio(context.Background(), name, data, media.AudioLimits{})
		if aErr != nil || a.Rate != media.SampleRate {
			t.Fatal(name, a, aErr)
		}
		rows, err = e.proj.(models.AudioProjector).EncodeAudio(nil, a.Samples)
	default:
		im, imErr := media.DecodeImage(name, data, media.Limits{})
		if imErr != nil {
			t.Fatal(imErr)
		}
		rows, err = e.proj.EncodeImage(nil, im)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func hashRows(rows []float32) [sha256.Size]byte {
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, rows); err != nil {
		panic(err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// checkSlots compares the media of a prompt with the names of what has to be
// there, and their place with that of the placeholders.
func checkSlots(t *testing.T, e *Engine, p rows, names []string, hashes map[string][sha256.Size]byte) {
	t.Helper()
	if len(p.media) != len(names) {
		t.Fatalf("%d media, want %d", len(p.media), len(names))
	}
	inSlot := make([]bool, len(p.ids))
	for i, m := range p.media {
		v, err := m.vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		if hashRows(v) != hashes[names[i]] {
			t.Errorf("slot %d holds other rows than %s", i, names[i])
		}
		kind := chat.Image
		if strings.HasSuffix(names[i], ".wav") {
			kind = chat.Audio
		}
		slot, _ := chat.SlotID(e.vocab, kind)
		for r := m.pos; r < m.pos+m.rows; r++ {
			inSlot[r] = true
			if p.ids[r] != slot {
				t.Fatalf("row %d of %s has id %d, want the placeholder %d", r, names[i], p.ids[r], slot)
			}
		}
	}
	image, _ := chat.SlotID(e.vocab, chat.Image)
	audio, _ := chat.SlotID(e.vocab, chat.Audio)
	for r, id := range p.ids {
		if (id == image || id == audio) != inSlot[r] {
			t.Errorf("row %d: a placeholder %v, in a slot %v", r, id, inSlot[r])
		}
	}
}

// TestSoundRows: one row for each begun 50 ms, at whatever rate the file has.
func TestSoundRows(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	for _, c := range []struct{ samples, rate, rows int }{
		{1, 16000, 1},
		{799, 16000, 1},
		{800, 16000, 1},
		{801, 16000, 2},
		{1600, 16000, 2},
		{400, 8000, 1},
		{401, 8000, 2},
		{44100, 44100, 20},
		{24000, 48000, 10},
	} {
		url := "data:audio/wav;base64," + base64.StdEncoding.EncodeToString(tone(c.samples, c.rate))
		_, all := gather(t, e, local(chat.Part{Kind: chat.Audio, Source: url}))
		v, err := all[0].vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		if all[0].rows != c.rows || len(v) != c.rows*e.proj.Embd() {
			t.Errorf("%d samples at %d: %d rows, %d values, want %d rows", c.samples, c.rate, all[0].rows, len(v), c.rows)
		}
	}
}

// TestImageRescale: the factor changes the number of rows.
func TestImageRescale(t *testing.T) {
	e, err := Open(context.Background(), Options{Model: tiny(t, "f32"), Threads: 1, ImageRescale: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	url := "data:;base64," + base64.StdEncoding.EncodeToString(bmpSquare(9))
	_, all := gather(t, e, local(chat.Part{Kind: chat.Image, Source: url}))
	if all[0].rows != 4*5 { // 160x160 pixels, and the column of padding
		t.Errorf("%d rows, want 20", all[0].rows)
	}
	for _, f := range []float64{-1, math.Inf(1), math.NaN()} {
		e, err := Open(context.Background(), Options{Model: tiny(t, "f32"), Threads: 1, ImageRescale: f})
		if err == nil {
			e.Close()
			t.Errorf("factor %v: no error", f)
		}
	}
}

func TestLocalPaths(t *testing.T) {
	local := LocalPaths("dir")
	for source, want := range map[string]string{
		"a.mp4": "dir/a.mp4", "sub/f%03d.png": "dir/sub/f%03d.png", "/a.mp4": "/a.mp4", "../a.mp4": "a.mp4",
		"file:///a%20b.mp4": "/a b.mp4", "file://localhost/a.mp4": "/a.mp4",
		"data:video/mp4;base64,AAAA": "", "http://host/a.mp4": "", "https://host/a.mp4": "", "file://host/a.mp4": "", "file://": "", "ftp://host/a.mp4": "",
	} {
		if path, ok := local(source); ok != (want != "") || ok && path != filepath.FromSlash(want) {
			t.Errorf("%s: %q, %v, want %q", source, path, ok, want)
		}
	}
	if _, _, err := LoadLocal("dir")(context.Background(), "file://host/a.mp4"); err == nil || !strings.Contains(err.Error(), "not a file URL") {
		t.Errorf("a file of another machine: error %v", err)
	}
	if _, _, err := LoadLocal("dir")(context.Background(), "ftp://host/a.mp4"); err == nil || !strings.Contains(err.Error(), "ftp://host/a.mp4: a URL of this kind is not fetched") {
		t.Errorf("ftp: error %v", err)
	}
}

// pictures is a projector that takes nothing but pictures.
type pictures struct{ models.Projector }

func TestMediaRefused(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wav := tone(48000, 16000)
	gif := "data:image/gif;base64," + base64.StdEncoding.EncodeToString([]byte("GIF89a\x01\x00\x01"))
	folder := frames(t, 2)
	if err := os.WriteFile(filepath.Join(folder, "f1.bmp"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		part chat.Part
		set  func(*Request)
		want string // "" : accepted
	}{
		{"sound", chat.Part{Kind: chat.Audio, Source: write("a.wav", wav)}, nil, ""},
		{"no source", chat.Part{Kind: chat.Audio}, nil, "audio without a source"},
		{"no load", chat.Part{Kind: chat.Video, Source: folder}, func(r *Request) { r.Load = nil }, "not allowed"},
		{"no such sound", chat.Part{Kind: chat.Audio, Source: "none.wav"}, nil, "none.wav"},
		{"no such clip", chat.Part{Kind: chat.Video, Source: "none.mp4"}, nil, "none.mp4"},
		{"sound cut short", chat.Part{Kind: chat.Audio, Source: write("cut.wav", wav[:1000])}, nil, "cut.wav"},
		{"sound without samples", chat.Part{Kind: chat.Audio, Source: write("empty.wav", tone(0, 16000))}, nil, "empty.wav"},
		{"long sound", chat.Part{Kind: chat.Audio, Source: write("long.wav", wav)}, func(r *Request) { r.Limits.Audio.MaxSeconds = 2 }, "long.wav: 3 seconds, at most 2"},
		{"large frames", chat.Part{Kind: chat.Video, Source: frames(t, 2)}, func(r *Request) { r.Limits.Image.MaxPixels = 6000 }, "6400 pixels, at most 6000"},
		{"clip cut short", chat.Part{Kind: chat.Video, Source: gif}, nil, "data URL"},
		{"broken frame", chat.Part{Kind: chat.Video, Source: folder}, nil, "f1.bmp"},
		{"empty folder", chat.Part{Kind: chat.Video, Source: t.TempDir()}, nil, "no pictures"},
		{"folder through Load alone", chat.Part{Kind: chat.Video, Source: folder}, func(r *Request) { r.Local = nil }, "is a directory"},
		{"one frame asked for", chat.Part{Kind: chat.Video, Source: folder}, func(r *Request) { r.Video.Frames = 1 }, "1 frames, want at least 2"},
		{"rate", chat.Part{Kind: chat.Video, Source: folder}, func(r *Request) { r.Video.FPS = -1 }, "-1 frames a second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := local(c.part)
			if c.set != nil {
				c.set(r)
			}
			_, err := e.CountTokens(context.Background(), r)
			if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
		})
	}

	whole := e.proj
	defer func() { e.proj = whole }() // before Close
	e.proj = pictures{whole}
	for _, kind := range []chat.Kind{chat.Audio, chat.Video} {
		_, err := e.CountTokens(context.Background(), local(chat.Part{Kind: kind, Source: "x"}))
		if want := fmt.Sprintf("mmproj-inkling-tiny-F32.gguf has no tower for %s", kind); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestShortProjector: rows that a projector owes are an error, not the rows of
// the next medium.
func TestShortProjector(t *testing.T) {
	m := &medium{name: "x.png", rows: 3, embd: 4, encode: func([]float32) ([]float32, error) { return make([]float32, 8), nil }}
	if _, err := m.vectors(nil); err == nil || !strings.Contains(err.Error(), "x.png: the projector gave 8 values, want 3 rows of 4") {
		t.Errorf("error %v", err)
	}
	failed := errors.New("no memory")
	m.encode = func([]float32) ([]float32, error) { return nil, failed }
	if _, err := m.vectors(nil); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

// TestManyMedia: of a request with far more media than fit no more are decoded than
// it takes to see that; a few too many can still be counted.
func TestManyMedia(t *testing.T) {
	e := openWith(t, Options{Context: 64})
	data, err := os.ReadFile(filepath.Join(testutil.Testdata(t, "inkling-tiny-eval"), "media", "000_0.png"))
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	request := func(n int) *Request {
		r := local(slices.Repeat([]chat.Part{{Kind: chat.Image, Source: "x.png"}}, n)...)
		r.Load = func(context.Context, string) (string, []byte, error) { loads++; return "x.png", data, nil }
		return r
	}
	_, one := gather(t, e, request(1))
	most := (maxMediaContexts*64 + one[0].rows - 1) / one[0].rows

	loads = 0
	if _, err := e.Generate(t.Context(), request(100_000)); !errors.Is(err, ErrContextFull) || !strings.Contains(err.Error(), "the context 64") {
		t.Errorf("error %v", err)
	}
	if loads != most {
		t.Errorf("%d pictures of %d rows were decoded, want %d", loads, one[0].rows, most)
	}
	n := 64/one[0].rows + 1
	if got, err := e.CountTokens(t.Context(), request(n)); err != nil || got < n*one[0].rows {
		t.Errorf("%d tokens of %d pictures, error %v", got, n, err)
	}
}
