// Package progress shows on a terminal how far a long piece of work is.
package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
)

// Loading says on a terminal that a model is being loaded, and for how long, until
// what it returns is called.
func Loading(w io.Writer, name string) (done func()) {
	status := terminal.NewStatusLine(w)
	stop, stopped := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(stopped)
		defer status.Clear()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				status.Show(fmt.Sprintf("loading %s, %.0f s", name, time.Since(start).Seconds()))
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
