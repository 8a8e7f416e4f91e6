package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

// manCommand prints the manual page, made of the same texts as the help.
func manCommand() *cli.Command {
	return &cli.Command{
		Name:            "man",
		Usage:           "print the manual page, for man -l - or a file inkling-run.1",
		UsageText:       "inkling-run man | man -l -",
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage.Errorf("man takes no arguments")
			}
			return writeMan(c.App.Writer, c.App)
		},
	}
}

// writeMan writes the page in roff with the man macros.
func writeMan(w io.Writer, app *cli.App) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH INKLING-RUN 1 \"\" %s \"User Commands\"\n", roffArg(buildinfo.Line()))
	b.WriteString(".SH NAME\ninkling\\-run \\- " + roff(app.Usage) + "\n")
	b.WriteString(".SH SYNOPSIS\n.B inkling\\-run\n.I COMMAND\n[arguments and options, in any order]\n")
	b.WriteString(".SH COMMANDS\n")
	for _, c := range app.Commands {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(c.Name), roff(c.Usage))
	}
	for _, c := range app.Commands {
		fmt.Fprintf(&b, ".SH %s\n%s.\n", roffArg(strings.ToUpper(c.Name)), roff(c.Usage))
		fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(c.UsageText))
		if c.Description != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(c.Description))
		}
		for _, f := range flagsOf(c.Flags) {
			names := make([]string, len(f.names))
			for i, n := range f.names {
				names[i] = `\fB` + roff(dashed(n)) + `\fR`
				if f.value != "" {
					names[i] += ` \fI` + roff(f.value) + `\fR`
				}
			}
			usage := f.usage
			if f.defaultsTo != "" {
				usage += " (default: " + f.defaultsTo + ")"
			}
			fmt.Fprintf(&b, ".TP\n%s\n%s\n", strings.Join(names, ", "), roff(usage))
		}
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", e.code, roff(e.meaning))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// roff escapes text: a backslash, a hyphen, and a dot or quote that begins a line
// mean something to it.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

// roffArg is text as one argument of a macro.
func roffArg(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
