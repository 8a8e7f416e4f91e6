package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/inkling-go/inkling/convert"
)

// progress returns what shows the progress of a conversion, nil unless w is a
// terminal, and what to call with its result.
func progress(w io.Writer) (show func(convert.Progress), done func(error)) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func(error) {}
	}
	bars := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	var bar *mpb.Bar
	var now atomic.Value // what is in work, as text; read by the goroutine that draws
	show = func(p convert.Progress) {
		shard := ""
		if p.ShardTotal > 0 {
			shard = fmt.Sprintf("%s %d%% → ", p.Shard, 100*p.ShardDone/p.ShardTotal)
		}
		now.Store(shard + filepath.Base(p.File) + " " + p.Tensor)
		if bar == nil {
			bar = bars.AddBar(p.Total,
				mpb.AppendDecorators(
					decor.CountersKibiByte("% .1f / % .1f"),
					decor.AverageSpeed(decor.SizeB1024(0), "  % .0f"),
					decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
					decor.Any(func(decor.Statistics) string { return "  " + now.Load().(string) }),
				))
		}
		bar.SetCurrent(p.Done)
	}
	done = func(err error) {
		if bar != nil {
			if err != nil {
				bar.Abort(false)
			} else {
				bar.SetTotal(-1, true)
			}
		}
		bars.Wait()
	}
	return show, done
}

// printReport says what was written, or in a dry run would be.
func printReport(w io.Writer, r convert.Report, dry bool) {
	var total int64
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s  %s, %d tensors", f.Path, size(f.Bytes), f.Tensors)
		if f.More != nil {
			fmt.Fprintf(w, " in %d files", 1+len(f.More))
		}
		for _, t := range f.Types {
			fmt.Fprintf(w, ", %v %s", t.Type, size(t.Bytes))
			if dry {
				fmt.Fprintf(w, " in %d", t.Tensors)
			}
		}
		if f.Kept {
			fmt.Fprintln(w, ", is there already")
			continue
		}
		fmt.Fprintln(w)
		total += f.Bytes
	}
	if r.Kept > 0 {
		fmt.Fprintf(w, "kept from the interrupted run: %s\n", size(r.Kept))
	}
	if r.Verified != nil {
		fmt.Fprintf(w, "verified: %d tensors, see %s\n", len(r.Verified), verifiedPath(r))
	}
	if dry {
		fmt.Fprintf(w, "memory: at most %s of buffers\n", size(r.Memory))
	} else {
		seconds := max(r.Took, time.Millisecond).Seconds()
		fmt.Fprintf(w, "done in %.1f s, %s/s\n", seconds, size(int64(float64(total)/seconds)))
	}
}

// size writes a number of bytes for people.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1000, 0
	for ; x >= 999.95 && u < len(units)-1; x /= 1000 {
		u++
	}
	return fmt.Sprintf("%.1f %cB", x, units[u])
}

// verifiedPath returns where the comparison with the checkpoint goes.
func verifiedPath(r convert.Report) string {
	return strings.TrimSuffix(r.Files[0].Path, ".gguf") + ".verify.json"
}

// writeVerified writes the comparison of each tensor.
func writeVerified(r convert.Report) error {
	data, err := json.MarshalIndent(r.Verified, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(verifiedPath(r), append(data, '\n'), 0o666)
}
