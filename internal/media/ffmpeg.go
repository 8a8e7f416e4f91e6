package media

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ffmpegFormats are the demuxers that ffmpeg may use. Playlist formats are not
// among them: such a file could make ffmpeg read other files or fetch addresses.
const ffmpegFormats = "aac,ac3,aiff,amr,ape,asf,au,avi,caf,eac3,flac,flv,m4v,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2," +
	"mp3,mpeg,mpegts,mxf,ogg,opus,tta,w64,wav,wv,y4m,yuv4mpegpipe"

// ffmpegInput are the options before and with the input; the path cannot be
// taken for another protocol.
func ffmpegInput(path string) []string {
	return []string{"-protocol_whitelist", "file,pipe", "-format_whitelist", ffmpegFormats, "-i", "file:" + path}
}

// lookTool finds ffmpeg or ffprobe.
func lookTool(tool, file, format string) (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		reason := "only " + tool + " can read this, and it is not installed"
		return "", &UnsupportedError{File: file, Format: format, Reason: reason}
	}
	return path, nil
}

// temporaryFile stores data where only this user can read it; remove deletes it.
func temporaryFile(data []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "inkling-media-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "media")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() { _ = os.RemoveAll(dir) }, nil
}

// tool is a running ffmpeg or ffprobe.
type tool struct {
	*exec.Cmd
	name   string
	stderr bytes.Buffer
}

// newTool prepares a command that dies with ctx.
func newTool(ctx context.Context, path string, args ...string) *tool {
	t := &tool{Cmd: exec.CommandContext(ctx, path, args...), name: filepath.Base(path)}
	t.Stderr = &t.stderr
	t.WaitDelay = 5 * time.Second
	return t
}

// explain adds the last line that the program wrote to its exit status.
func (t *tool) explain(err error) error {
	lines := strings.Split(strings.TrimSpace(t.stderr.String()), "\n")
	last := lines[len(lines)-1]
	if i := slices.Index(t.Args, "-i"); i >= 0 {
		last = strings.TrimPrefix(last, t.Args[i+1]+": ") // the temporary file says nothing to a user
	}
	if last != "" {
		return fmt.Errorf("%s: %s", t.name, last)
	}
	return fmt.Errorf("%s: %w", t.name, err)
}

// cutShort tells whether the program noted in passing that the file should go on.
func (t *tool) cutShort() bool {
	s := t.stderr.String()
	return strings.Contains(s, "File ended prematurely") || strings.Contains(s, "partial file") // Matroska, MP4
}

// ffmpegAudio decodes the first sound track of any file that ffmpeg knows.
// The data goes through a temporary file because some formats need seeking.
func ffmpegAudio(ctx context.Context, name, format string, data []byte, lim AudioLimits) (*Audio, error) {
	path, err := lookTool("ffmpeg", name, format)
	if err != nil {
		return nil, err
	}
	file, remove, err := temporaryFile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer remove()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args := append([]string{"-v", "error", "-nostdin"}, ffmpegInput(file)...)
	// One second more than allowed, to notice that it is too long.
	args = append(args, "-map", "0:a:0", "-map_metadata", "-1", "-t", fmt.Sprint(lim.seconds()+1),
		"-c:a", "pcm_f32le", "-f", "wav", "pipe:1")
	cmd := newTool(ctx, path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: ffmpeg: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: ffmpeg: %w", name, err)
	}
	stream := &endReader{Reader: out}
	a, err := readWAVStream(stream, lim)
	if !stream.ended {
		cancel() // it may still be writing, but no more is wanted
	}
	werr := cmd.Wait()
	switch {
	case !stream.ended: // err says why
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case werr != nil: // the likely cause of whatever is wrong with the stream
		err = cmd.explain(werr)
	case err == nil && cmd.cutShort():
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, audioErr(name, format, lim, err)
	}
	return a, nil
}

// endReader notes whether the end was reached.
type endReader struct {
	io.Reader
	ended bool
}

func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.ended = r.ended || err != nil
	return n, err
}

// readWAVStream reads 32-bit float samples as ffmpeg writes them to a pipe.
func readWAVStream(r io.Reader, lim AudioLimits) (*Audio, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	info, err := parseWAV(head)
	if err != nil {
		return nil, err
	}
	if info.tag != wavFloat || info.bits != 32 {
		return nil, fmt.Errorf("ffmpeg wrote format tag %d of %d bits", info.tag, info.bits)
	}
	m, err := newMixdown(info.rate, info.channels, lim)
	if err != nil {
		return nil, err
	}
	if _, err := b.Discard(info.data); err != nil {
		return nil, err
	}
	var sample [4]byte
	for {
		if _, err := io.ReadFull(b, sample[:]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := m.add(float64(math.Float32frombits(binary.LittleEndian.Uint32(sample[:])))); err != nil {
			return nil, err
		}
	}
	if len(m.Samples) == 0 {
		return nil, errors.New("no samples")
	}
	return &m.Audio, nil
}
