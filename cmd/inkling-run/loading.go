package main

import (
	"fmt"
	"io"
	"time"
)

// loading says on a terminal that a model is being loaded, and for how long, until
// what it returns is called.
func loading(w io.Writer, name string) (done func()) {
	status := newStatusLine(w)
	stop, stopped := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(stopped)
		defer status.clear()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				status.show(fmt.Sprintf("loading %s, %.0f s", name, time.Since(start).Seconds()))
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
