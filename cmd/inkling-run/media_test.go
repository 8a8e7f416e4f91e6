package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runs is the program in this process.
func runs(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(append([]string{"inkling-run"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestInputAudio gives a sound as OpenAI's clients do.
func TestInputAudio(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media", "047.wav"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal([]any{map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "input_audio", "input_audio": map[string]string{"data": base64.StdEncoding.EncodeToString(data), "format": "wav"}},
		map[string]any{"type": "text", "text": "Transcribe the speech."},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runs("run", filepath.Join(models, "tiny-F32.gguf"), "--messages", path, "-t", "1", "--hide-thinking")
	if code != exitOK || out != "the number is sixty four\n" {
		t.Errorf("exit status %d, %q, %s", code, out, errs)
	}
}

// TestDamagedMedia cuts and garbles a file of each kind: one line that names the
// file and says what is wrong, and exit status 1.
func TestDamagedMedia(t *testing.T) {
	from := filepath.Join("..", "..", "internal", "media", "testdata")
	wav := filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media", "047.wav")
	for option, files := range map[string][]string{
		"--image": {"images/palette.png", "images/progressive.jpg", "images/noise.jpg", "images/lossy.webp", "images/lossless.webp", "images/plain.gif", "images/palette.bmp", "images/palette-tiff_lzw.tif"},
		"--audio": {wav, "audio/stereo16.flac", "audio/stereo.ogg", "audio/cbr.mp3"},
		"--video": {"images/anim-lossy.webp", "images/plain.gif"},
	} {
		for _, file := range files {
			if file != wav {
				file = filepath.Join(from, file)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			garbled := slices.Clone(data)
			for i := 12; i < len(garbled); i++ {
				garbled[i] = byte(i * 37)
			}
			for how, bad := range map[string][]byte{"half": data[:len(data)/2], "head": data[:10], "garbled": garbled, "empty": nil} {
				name := how + filepath.Ext(file)
				t.Run(strings.Join([]string{option, filepath.Base(file), how}, " "), func(t *testing.T) {
					t.Chdir(t.TempDir())
					if err := os.WriteFile(name, bad, 0o600); err != nil {
						t.Fatal(err)
					}
					code, out, errs := runs("media", "--as", strings.TrimPrefix(option, "--"), name)
					checkRefusal(t, code, out, errs, "inkling-run: "+name+": ")
				})
			}
		}
	}
}

func checkRefusal(t *testing.T, code int, out, errs, prefix string) {
	t.Helper()
	if code != exitError || out != "" {
		t.Errorf("exit status %d, standard output %q", code, out)
	}
	reason, ok := strings.CutPrefix(errs, prefix)
	if !ok || len(reason) < 5 || strings.Count(errs, "\n") != 1 {
		t.Errorf("standard error %q, want one line with %q and a reason", errs, prefix)
	}
}

// TestWithFFmpeg reads a video file and a sound that need ffmpeg, where it is
// installed.
func TestWithFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed")
	}
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3", "-c:v", "mpeg4", "v.mp4"},
		{"-f", "lavfi", "-i", "sine=440:duration=1", "-c:a", "aac", "a.m4a"},
	} {
		if out, err := exec.Command(ffmpeg, append([]string{"-v", "error"}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("this ffmpeg can not make the files: %s", out)
		}
	}
	code, out, errs := runs("media", "v.mp4", "a.m4a")
	want := "v.mp4\n" +
		"  length  3 s, 30 frames, 10 a second\n" +
		"  size    64 x 48 pixels\n" +
		"  tiles   2 rows, 2 columns, of 40 x 40 pixels\n" +
		"  pair    frames 0 and 5 at t=0.0s\n" +
		"  pair    frames 10 and 15 at t=1.0s\n" +
		"  pair    frames 20 and 25 at t=2.0s\n" +
		"  tokens  12 in 3 pictures of 4, besides those of the times between them\n" +
		"a.m4a\n"
	if code != exitOK || !strings.HasPrefix(out, want) {
		t.Errorf("exit status %d, %s%s", code, out, errs)
	}
	for _, name := range []string{"v.mp4", "a.m4a"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cut := fmt.Sprintf("cut%s", filepath.Ext(name))
		if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := runs("media", cut)
		checkRefusal(t, code, out, errs, "inkling-run: "+cut+": ")
		if strings.Contains(errs, os.TempDir()) {
			t.Errorf("a temporary file in %q", errs)
		}
	}
}
