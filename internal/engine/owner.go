package engine

import (
	"context"
	"sync"
)

// mailbox is how other goroutines reach the one that owns the model.
type mailbox struct {
	mu       sync.Mutex
	jobs     []func() // run between steps, in order
	closed   bool
	requests int           // that are between enter and leave
	signal   chan struct{} // room for one: there is something to look at
	done     chan struct{} // closed when the owner has ended

	alone       *task // the only task of the step that is being computed, if that may be interrupted
	interrupted bool
}

func newMailbox() *mailbox {
	return &mailbox{signal: make(chan struct{}, 1), done: make(chan struct{})}
}

// wake makes the owner look again at what it can do.
func (m *mailbox) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// post hands a job to the owner; false if it has ended.
func (m *mailbox) post(job func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.jobs = append(m.jobs, job)
	m.wake()
	return true
}

// take returns the jobs that are there.
func (m *mailbox) take() (jobs []func(), closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs, m.jobs = m.jobs, nil
	return jobs, m.closed
}

// enter counts a request in, or says why it can not come.
func (e *Engine) enter() error {
	e.mail.mu.Lock()
	defer e.mail.mu.Unlock()
	if e.mail.closed {
		return ErrClosed
	}
	if e.mail.requests >= e.opt.Parallel+e.opt.Queue {
		return ErrBusy
	}
	e.mail.requests++
	return nil
}

func (e *Engine) leave() {
	e.mail.mu.Lock()
	defer e.mail.mu.Unlock()
	e.mail.requests--
}

func (e *Engine) wake() { e.mail.wake() }

// submit hands a task to the owner. Its context, when it ends, makes the owner
// look, and stops a step that computes nothing else.
func (e *Engine) submit(t *task) {
	t.unwatch = context.AfterFunc(t.ctx, func() {
		e.interrupt(t)
		e.wake()
	})
	if !e.mail.post(func() { e.sched.waiting = append(e.sched.waiting, t) }) {
		t.end(ErrClosed)
	}
}

func (e *Engine) interrupt(t *task) {
	e.mail.mu.Lock()
	defer e.mail.mu.Unlock()
	if e.mail.alone == t {
		e.mail.interrupted = true
		e.be.Interrupt()
	}
}

// interruptible computes something that is t's alone.
func (e *Engine) interruptible(t *task, compute func() error) error {
	m := e.mail
	m.mu.Lock()
	if err := t.ctx.Err(); err != nil {
		m.mu.Unlock()
		return err
	}
	m.alone = t
	m.mu.Unlock()
	err := compute()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alone = nil; m.interrupted {
		m.interrupted = false
		e.be.Resume()
	}
	return err
}

// do runs job on the owner's goroutine between two steps, and waits for it.
func (e *Engine) do(ctx context.Context, job func() error) error {
	var once sync.Once // for the job, or for giving it up
	result := make(chan error, 1)
	if !e.mail.post(func() { once.Do(func() { result <- job() }) }) {
		return ErrClosed
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		once.Do(func() { result <- context.Cause(ctx) })
	case <-e.mail.done:
		once.Do(func() { result <- ErrClosed })
	}
	return <-result
}

// Close ends all requests with ErrClosed after the step that is being computed,
// and frees the model. Whoever wants them to finish waits for them first.
func (e *Engine) Close() {
	e.once.Do(func() {
		e.mail.mu.Lock()
		e.mail.closed = true
		e.mail.mu.Unlock()
		e.wake()
		<-e.mail.done
		e.release()
	})
	<-e.mail.done
}

// run is the goroutine that owns the model.
func (e *Engine) run() {
	defer close(e.mail.done)
	for {
		jobs, closed := e.mail.take()
		for _, job := range jobs {
			job()
		}
		if closed {
			e.sched.endAll(ErrClosed)
			return
		}
		if !e.sched.step() {
			<-e.mail.signal
		}
	}
}
