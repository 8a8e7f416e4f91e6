// Package usage has the error for a command line that makes no sense.
package usage

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Error is a command line that makes no sense.
type Error struct {
	Err error // what does not make sense, as the user is told
}

// Error is the message of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is fmt.Errorf for an Error.
func Errorf(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...)}
}

// OnError is what a command makes of an error of the flag package: one that
// says where the options are listed.
func OnError(c *cli.Context, err error, _ bool) error {
	if strings.Contains(err.Error(), "not defined") {
		err = fmt.Errorf("%w (inkling-run %s --help lists the options)", err, c.Command.Name)
	}
	return &Error{Err: err}
}
