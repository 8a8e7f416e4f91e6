package progress

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/convert"
)

// Conversion returns what says that a conversion begins, and shows how far it is if
// w is a terminal, and what to call with its result.
func Conversion(w io.Writer, begins string) (show func(convert.Progress), done func(error)) {
	var begin sync.Once
	say := func(convert.Progress) { begin.Do(func() { fmt.Fprintln(w, begins) }) }
	if !terminal.Is(w) {
		return say, func(error) {}
	}
	bars := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	var bar *mpb.Bar
	show = func(p convert.Progress) {
		say(p)
		if bar == nil {
			bar = bars.AddBar(p.Total, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
				decor.CountersKibiByte("% .1f / % .1f"),
				decor.AverageSpeed(decor.SizeB1024(0), "  % .0f"),
				decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
			))
		}
		bar.SetCurrent(p.Done)
	}
	done = func(err error) {
		switch {
		case bar == nil:
		case err != nil:
			bar.Abort(true)
		default:
			bar.SetTotal(-1, true)
		}
		bars.Wait()
	}
	return show, done
}
