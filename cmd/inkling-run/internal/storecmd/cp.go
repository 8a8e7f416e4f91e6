package storecmd

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

// Cp gives a model of the store a second name.
func Cp() *cli.Command {
	return &cli.Command{
		Name:            "cp",
		Usage:           "give a model of the store a second name",
		UsageText:       "inkling-run cp NAME NEW",
		Description:     "Gives a model of the store a second name, in place of the model that may have it.\nThe files are shared.\n\nExit status: 0 done, 1 an error, 2 wrong usage.",
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usage.Errorf("%d names, want the model's and a new one", c.NArg())
			}
			from, to := c.Args().Get(0), c.Args().Get(1)
			if err := checkNames(from, to); err != nil {
				return err
			}
			s, err := store.Open("")
			if err != nil {
				return err
			}
			if err := s.Copy(from, to); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.App.Writer, "copied %s to %s\n", from, to)
			return err
		},
	}
}
