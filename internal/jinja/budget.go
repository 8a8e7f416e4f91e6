package jinja

import (
	"fmt"
	"unicode/utf8"
)

// Limits bound what one rendering may take. The zero value stands for the defaults.
type Limits struct {
	Steps int // operations: evaluated nodes, looked at bytes (64 are one step), compared and copied items
	Bytes int // of all texts and lists that are made on the way, kept or not
	Depth int // of nested calls, expressions and values
}

// Defaults of Limits. The longest templates in use take some 10,000 steps for a conversation of ten messages. A step takes some
// 50 ns, a level of the depth some 500 bytes of stack.
const (
	DefaultSteps = 4_000_000
	DefaultBytes = 32 << 20
	DefaultDepth = 5_000
)

// bytesPerItem is what an item of a list or dict counts, in bytes.
const bytesPerItem = 32

// LimitError reports a template that went over one of its limits.
type LimitError struct {
	What  string // "steps", "bytes", "levels", …
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the template takes more than %d %s", e.Limit, e.What)
}

// budget is what is left of Limits.
type budget struct {
	limits              Limits
	steps, bytes, depth int
}

func newBudget(l Limits) budget {
	if l.Steps == 0 {
		l.Steps = DefaultSteps
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	return budget{limits: l, steps: l.Steps, bytes: l.Bytes, depth: l.Depth}
}

// step counts n operations.
func (b *budget) step(n int) {
	if n > b.steps {
		fail(&LimitError{"steps", b.limits.Steps})
	}
	b.steps -= n
}

// scan counts the look at all of s.
func (b *budget) scan(s string) { b.step(1 + len(s)/64) }

// grow counts n bytes that are about to be made, and the work of it.
func (b *budget) grow(n int) {
	if n > b.bytes {
		fail(&LimitError{"bytes", b.limits.Bytes})
	}
	b.bytes -= n
	b.step(1 + n/64)
}

// items counts a list or dict of n members that is about to be made.
func (b *budget) items(n int) {
	if n > b.bytes/bytesPerItem {
		fail(&LimitError{"bytes", b.limits.Bytes})
	}
	b.grow(n * bytesPerItem)
	b.step(n)
}

// enter goes one level down; leave must follow, unless the rendering has failed.
func (b *budget) enter() {
	if b.depth == 0 {
		fail(&LimitError{"levels", b.limits.Depth})
	}
	b.depth--
}

func (b *budget) leave() { b.depth++ }

// runes returns the code points of s, counted.
func (b *budget) runes(s string) []rune {
	b.grow(4 * utf8.RuneCountInString(s))
	return []rune(s)
}

// failure carries an error up to Render, or to Compile, which return it. The recursion is deep and every step can fail.
type failure struct{ err error }

func fail(err error) { panic(failure{err}) }

func failf(format string, args ...any) { fail(fmt.Errorf(format, args...)) }

// catch turns a failure into an error. Other panics go on.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		panic(p)
	}
}
