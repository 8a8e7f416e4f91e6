package storecmd

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

// checkNames says which name can be none of a model in the store.
func checkNames(names ...string) error {
	for _, name := range names {
		if _, err := store.ParseName(name); err != nil {
			return &usage.Error{Err: err}
		}
	}
	return nil
}

// Rm removes models from the store.
func Rm() *cli.Command {
	return &cli.Command{
		Name:            "rm",
		Usage:           "remove models from the store",
		UsageText:       "inkling-run rm NAME...",
		Description:     "Removes models from the store, and their files unless other models have them too. A\nprogram that has a model loaded keeps it until it ends.\n\nExit status: 0 done, 1 an error, 2 wrong usage.",
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usage.Errorf("no model; inkling-run list lists them")
			}
			if err := checkNames(c.Args().Slice()...); err != nil {
				return err
			}
			s, err := store.Open("")
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range c.Args().Slice() {
				if err := s.Delete(name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(c.App.Writer, "removed %s\n", name)
			}
			return errors.Join(errs...)
		},
	}
}
