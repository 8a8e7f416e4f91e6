package inspectcmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models/inkling"
)

const mediaDescription = `Prints what a model gets of pictures, sounds and videos: their size, the tiles or
frames that they are cut into, and the tokens that these take in a prompt. They are
prepared as for the published Inkling models, or as --mmproj says. With a projector
of a Kimi model pictures and clips are shown as its tower sees them.

A video (FILE, folder or pattern f%03d.png of numbered pictures, with
FILE:fps=F:frames=N for settings of its own) is taken as pairs of neighbouring
frames, which is experimental. GIF, PNG and WebP files are pictures unless
--as video is given.

--dump OUT writes what one file becomes. To OUT.npy goes the array: of a picture
tiles, float32 [tiles, 2, 40, 40, 3]; of a sound dMel levels, int32
[frames, 80]; of a video, float32 [pairs, tiles, 2, 40, 40, 3]. To OUT.png
goes a picture of them, with grey where a tile is padding; the lowest
frequencies of a sound are at the bottom.

Exit status: 0 done, 1 an error, 2 wrong usage.`

// Media shows what media become.
func Media() *cli.Command {
	return &cli.Command{
		Name:            "media",
		Usage:           "print what the model gets of pictures, sounds and videos",
		UsageText:       "inkling-run media FILE... [options]",
		Description:     mediaDescription,
		HideHelpCommand: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "as", Usage: "take the files as `KIND`: image, audio or video", DefaultText: "what they are"},
			&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` that says how pictures are cut", DefaultText: "the published models' way"},
			&cli.StringFlag{Name: "dump", Usage: "write what the file becomes to `OUT`.npy or OUT.png"},
		}, slices.Concat(flags.Media(), flags.Layout())...),
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			v, err := newViewer(c)
			if err != nil {
				return err
			}
			defer v.close()
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error {
				for _, f := range c.Args().Slice() {
					if err := v.show(ctx, f); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// viewer prepares media as a request does and describes them.
type viewer struct {
	flags.MediaSettings
	w     io.Writer
	text  bytes.Buffer // description of a file, written when all of it is done
	load  engine.Load
	local engine.Local
	tiles media.TileConfig
	as    chat.Kind // chat.Text: as they are
	dump  string

	tower  *tower           // in place of tiles, of a Kimi model's projector
	layout media.ClipLayout // for it; empty: its own
}

func (v *viewer) close() {
	if v.tower != nil {
		v.tower.close()
	}
}

func newViewer(c *cli.Context) (*viewer, error) {
	s, err := flags.MediaFrom(c)
	if err != nil {
		return nil, err
	}
	v := &viewer{
		MediaSettings: s, w: c.App.Writer, load: engine.LoadLocal("."), local: engine.LocalPaths("."),
		tiles: inkling.PublishedTiles(), dump: c.String("dump"),
	}
	if c.IsSet("as") {
		kinds := map[string]chat.Kind{"image": chat.Image, "audio": chat.Audio, "video": chat.Video}
		kind, ok := kinds[c.String("as")]
		if !ok {
			return nil, usage.Errorf("--as %q: want image, audio or video", c.String("as"))
		}
		v.as = kind
	}
	switch ext := strings.ToLower(filepath.Ext(v.dump)); {
	case c.NArg() == 0:
		return nil, usage.Errorf("no file; inkling-run media --help says more")
	case v.dump == "" && !c.IsSet("dump"):
	case ext != ".npy" && ext != ".png":
		return nil, usage.Errorf("--dump %s: want a name that ends in .npy or .png", v.dump)
	case c.NArg() > 1:
		return nil, usage.Errorf("--dump takes one file, not %d", c.NArg())
	}
	if path := c.String("mmproj"); path != "" {
		if err := v.openProjector(c, path); err != nil {
			return nil, err
		}
	}
	if s.Rescale > 0 {
		v.tiles.RescaleFrac = s.Rescale
	}
	return v, nil
}

// openProjector reads how pictures are cut, or opens the tower that sees them.
func (v *viewer) openProjector(c *cli.Context, path string) error {
	layout, patches, err := flags.ClipFrom(c)
	if err != nil {
		return err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	kind, err := f.StrOr("clip.projector_type", "") // Inkling's say it for each tower
	switch {
	case err != nil:
		return err
	case kind == "":
		v.tiles, err = inkling.ReadTiles(f)
		return err
	case v.dump != "":
		return usage.Errorf("--dump writes what Inkling's models get, and %s is of another kind", path)
	}
	v.layout = layout
	if v.tower, err = openTower(path, patches); v.tower == nil && err == nil {
		err = fmt.Errorf("%s: a projector of kind %q is not shown", path, kind)
	}
	return err
}

// show describes one file, and writes the dump.
func (v *viewer) show(ctx context.Context, source string) error {
	p, err := v.part(source)
	if err != nil {
		return err
	}
	v.text.Reset()
	fmt.Fprintln(&v.text, flags.MediumName(p))
	switch {
	case v.tower != nil:
		err = v.towerShow(ctx, p)
	case p.Kind == chat.Audio:
		err = v.sound(ctx, p)
	case p.Kind == chat.Video:
		err = v.video(ctx, p)
	default:
		err = v.picture(ctx, p)
	}
	if err != nil {
		return err
	}
	_, err = v.w.Write(v.text.Bytes())
	return err
}

// part finds out what a file is. A data URL or address has to be named by --as.
func (v *viewer) part(source string) (chat.Part, error) {
	kind := v.as
	if kind == chat.Text {
		p, err := flags.MediaPart(chat.Video, source) // without :fps=F
		if err != nil {
			return p, err
		}
		path, ok := v.local(p.Source)
		if !ok {
			return p, fmt.Errorf("%.60s: what it is has to be said by --as", source)
		}
		if kind, err = flags.FileKind(path); err != nil {
			return p, err
		}
	}
	return flags.MediaPart(kind, source)
}

// line writes a line of the description.
func (v *viewer) line(name, format string, args ...any) {
	fmt.Fprintf(&v.text, "  %-8s%s\n", name, fmt.Sprintf(format, args...))
}

// image loads and decodes a picture.
func (v *viewer) image(ctx context.Context, source string) (name string, im *media.Image, err error) {
	name, data, err := v.load(ctx, source)
	if err != nil {
		return name, nil, err
	}
	im, err = media.DecodeImage(name, data, v.Limits.Image)
	return name, im, err
}

func (v *viewer) picture(ctx context.Context, p chat.Part) error {
	name, im, err := v.image(ctx, p.Source)
	if err != nil {
		return err
	}
	v.size(im.W, im.H)
	rows, cols := media.TileCount(im.W, im.H, v.tiles)
	v.line("tokens", "%d", rows*cols)
	if v.dump == "" {
		return nil
	}
	ts, err := media.Tiles(im, v.tiles)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return v.dumpTiles([]*media.TileSet{ts}, true)
}

// size writes the lines that a picture and a video share.
func (v *viewer) size(w, h int) {
	v.line("size", "%d x %d pixels", w, h)
	if tw, th := v.tiles.RescaledSize(w, h); tw != w || th != h {
		v.line("scaled", "%d x %d pixels", tw, th)
	}
	rows, cols := media.TileCount(w, h, v.tiles)
	v.line("tiles", "%d rows, %d columns, of %d x %d pixels", rows, cols, v.tiles.Patch, v.tiles.Patch)
}

func (v *viewer) sound(ctx context.Context, p chat.Part) error {
	name, data, err := v.load(ctx, p.Source)
	if err != nil {
		return err
	}
	a, err := media.DecodeAudio(ctx, name, data, v.Limits.Audio)
	if err != nil {
		return err
	}
	samples, err := media.Resample(a.Samples, a.Rate, media.SampleRate)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	v.line("length", "%s s, %d samples at %d Hz", seconds(float64(len(a.Samples))/float64(a.Rate)), len(a.Samples), a.Rate)
	frames := media.MelFrames(len(samples))
	v.line("frames", "%d of 50 ms", frames)
	v.line("tokens", "%d", frames)
	if v.dump == "" {
		return nil
	}
	mel, err := media.Mel(samples)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return v.dumpLevels(media.DMel(mel), frames)
}

func (v *viewer) video(ctx context.Context, p chat.Part) error {
	fps := cmp.Or(p.FPS, v.MediaSettings.Video.FPS, media.DefaultFPS)
	opts := media.VideoOptions{FPS: fps, Limits: v.Limits.Image}
	pairs := media.MaxPairs
	switch n := cmp.Or(p.Frames, v.MediaSettings.Video.Frames); {
	case n == 1:
		return fmt.Errorf("%s: a model takes pairs of frames, so that it gets 2 at least", flags.MediumName(p))
	case n > 0:
		pairs = min(pairs, n/2)
	}
	var whole media.Timeline
	sample := media.SamplePairs(opts.FPS, pairs)
	opts.Sample = func(t media.Timeline) []int {
		whole = t
		return sample(t)
	}
	clip, err := v.decode(ctx, p.Source, opts)
	if err != nil {
		return err
	}
	w, h := clip.Frames[0].W, clip.Frames[0].H
	v.line("length", "%s s, %d frames, %s a second", seconds(whole.Duration()), len(whole.Start), seconds(whole.FPS))
	v.size(w, h)
	for i := 0; i+1 < len(clip.Frames); i += 2 {
		v.line("pair", "frames %d and %d at t=%.1fs", clip.Index[i], clip.Index[i+1], clip.Times[i])
	}
	rows, cols := media.TileCount(w, h, v.tiles)
	n := len(clip.Frames) / 2
	v.line("tokens", "%d in %d pictures of %d, besides those of the times between them", n*rows*cols, n, rows*cols)
	if v.dump == "" {
		return nil
	}
	var sets []*media.TileSet
	for i := 0; i+1 < len(clip.Frames); i += 2 {
		ts, err := media.TilesPair(clip.Frames[i], clip.Frames[i+1], v.tiles)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Source, err)
		}
		sets = append(sets, ts)
	}
	return v.dumpTiles(sets, false)
}

func (v *viewer) decode(ctx context.Context, source string, opts media.VideoOptions) (*media.Clip, error) {
	if path, ok := v.local(source); ok {
		return media.DecodeVideo(ctx, path, opts)
	}
	name, data, err := v.load(ctx, source)
	if err != nil {
		return nil, err
	}
	return media.DecodeVideoData(ctx, name, data, opts)
}

// seconds writes a number with what it needs of three decimals.
func seconds(x float64) string {
	s := strconv.FormatFloat(x, 'f', 3, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
