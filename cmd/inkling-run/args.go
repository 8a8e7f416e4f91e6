package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// interspersed moves the options of a command before its other arguments: the
// flag package that the cli package is built on stops at the first argument that
// is none. "--" ends the options.
func interspersed(args []string, commands []*cli.Command) []string {
	if len(args) < 2 {
		return args
	}
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[1]) })
	if i < 0 {
		return args
	}
	takesValue := make(map[string]bool)
	for _, f := range commands[i].Flags {
		if _, isBool := f.(*cli.BoolFlag); !isBool {
			for _, name := range f.Names() {
				takesValue[name] = true
			}
		}
	}
	opts, rest := slices.Clone(args[:2]), []string(nil)
	for args = args[2:]; len(args) > 0; args = args[1:] {
		a := args[0]
		if a == "--" {
			rest = append(rest, args[1:]...)
			break
		}
		if !isOption(a) {
			rest = append(rest, a)
			continue
		}
		opts = append(opts, a)
		if takesValue[strings.TrimLeft(a, "-")] {
			if len(args) == 1 {
				return opts // for the flag package to say what is missing
			}
			args = args[1:]
			opts = append(opts, args[0])
		}
	}
	return append(append(opts, "--"), rest...)
}

// isOption reports whether an argument is one or two dashes and a letter. A
// prompt may well begin with a dash: "-3 + 5?", "- item".
func isOption(a string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-")
	return name != a && name != "" && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
}
