package progress

import (
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/store"
)

// Store returns what shows the progress of a command of the store, nil
// unless w is a terminal, and what to call with its result.
func Store(w io.Writer) (show func(store.Progress), done func(error)) {
	if !terminal.Is(w) {
		return nil, func(error) {}
	}
	b := &storeBars{bars: mpb.New(mpb.WithOutput(w), mpb.WithWidth(30)), by: map[string]*mpb.Bar{}}
	return b.show, b.done
}

// storeBars are a bar for each file and what is done with it.
type storeBars struct {
	bars *mpb.Progress
	by   map[string]*mpb.Bar // by status
}

func (b *storeBars) show(p store.Progress) {
	if p.Total <= 0 {
		return // soon over
	}
	bar := b.by[p.Status]
	if bar == nil {
		bar = b.bars.AddBar(p.Total,
			mpb.PrependDecorators(decor.Name(p.Status, decor.WC{C: decor.DindentRight | decor.DSyncWidth})),
			mpb.AppendDecorators(
				decor.CountersKibiByte("% .1f / % .1f"),
				decor.AverageSpeed(decor.SizeB1024(0), "  % .0f"),
				decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
			))
		b.by[p.Status] = bar
		// What an earlier pull has fetched says nothing about the speed of this one.
		bar.SetRefill(p.Completed)
	}
	bar.SetCurrent(p.Completed)
}

func (b *storeBars) done(err error) {
	for _, bar := range b.by {
		if err != nil || !bar.Completed() {
			bar.Abort(false)
		}
	}
	b.bars.Wait()
}
