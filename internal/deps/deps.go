package deps

import (
	_ "github.com/ardanlabs/jinja"
	_ "github.com/dlclark/regexp2/v2"
	_ "github.com/edsrzf/mmap-go"
	_ "github.com/go-audio/audio"
	_ "github.com/go-audio/wav"
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/hajimehoshi/go-mp3"
	_ "github.com/jfreymuth/oggvorbis"
	_ "github.com/mewkiz/flac"
	_ "github.com/ollama/ollama/ml/backend/ggml/ggml/src"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/urfave/cli/v2"
	_ "github.com/vbauerster/mpb/v8"
	_ "golang.org/x/image/webp"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/dsp/fourier"
)
