package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// onUsageError is what a command makes of an error of the flag package: one that
// says where the options are listed.
func onUsageError(c *cli.Context, err error, _ bool) error {
	if strings.Contains(err.Error(), "not defined") {
		err = fmt.Errorf("%w (inkling-run %s --help lists the options)", err, c.Command.Name)
	}
	return &usageError{err}
}
