package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// openDirectory takes the pictures of a directory as frames, in the order of
// the last number in their names, and by name where that decides nothing.
func openDirectory(dir string, opts VideoOptions) (videoSource, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return videoSource{}, err
	}
	var files []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff":
			if !e.IsDir() {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(files) == 0 {
		return videoSource{}, &UnsupportedError{File: dir, Reason: "no pictures in this directory"}
	}
	slices.SortFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(frameNumber(a), frameNumber(b)), cmp.Compare(a, b))
	})
	return pictureSource(files, opts), nil
}

var digits = regexp.MustCompile(`\d+`)

// frameNumber is the last number in a file's name, or -1.
func frameNumber(path string) int {
	base := filepath.Base(path)
	all := digits.FindAllString(strings.TrimSuffix(base, filepath.Ext(base)), -1)
	if len(all) == 0 {
		return -1
	}
	n, err := strconv.Atoi(all[len(all)-1])
	if err != nil {
		return -1 // more digits than an int holds
	}
	return n
}

// framePattern finds the one %d or %0Nd of a pattern.
var framePattern = regexp.MustCompile(`%(0\d)?d`)

// openPattern takes the files that a pattern gives for consecutive numbers from
// 0 or 1.
func openPattern(pattern string, opts VideoOptions) (videoSource, error) {
	at := framePattern.FindStringIndex(pattern)
	if at == nil || strings.Count(pattern, "%") != 1 {
		return videoSource{}, &UnsupportedError{File: pattern, Reason: "a frame pattern needs one number such as %03d"}
	}
	name := func(n int) string {
		return pattern[:at[0]] + fmt.Sprintf(pattern[at[0]:at[1]], n) + pattern[at[1]:]
	}
	var files []string
	for n := 0; len(files) <= maxSourceFrames; n++ {
		if _, err := os.Stat(name(n)); err == nil {
			files = append(files, name(n))
		} else if !errors.Is(err, os.ErrNotExist) {
			return videoSource{}, err
		} else if n > 0 {
			break
		}
	}
	if len(files) == 0 {
		return videoSource{}, fmt.Errorf("%s: no frame: neither %s nor %s: %w", pattern, name(0), name(1), os.ErrNotExist)
	}
	return pictureSource(files, opts), nil
}

func pictureSource(files []string, opts VideoOptions) videoSource {
	rate, sampled := opts.FrameRate, opts.FrameRate <= 0
	if sampled {
		rate = opts.fps()
	}
	timeline := evenTimeline(len(files), rate)
	timeline.Sampled = sampled
	return videoSource{
		format:   "frames",
		Timeline: timeline,
		frames: func(ctx context.Context, indices []int, yield func(*Image) error) error {
			for _, i := range indices {
				if err := ctx.Err(); err != nil {
					return err
				}
				im, err := readImage(files[i], opts.Limits)
				if err != nil {
					return err
				}
				if err := yield(im); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// readImage decodes a picture file, whose size is checked before it is read.
func readImage(path string, lim Limits) (*Image, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > lim.bytes() {
		return nil, &LimitError{File: path, What: "bytes", Found: st.Size(), Max: lim.bytes()}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return DecodeImage(path, data, lim)
}
