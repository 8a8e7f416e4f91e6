package main

import (
	"slices"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/inspectcmd"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/measurecmd"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/runcmd"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/servecmd"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/storecmd"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

// commands returns the subcommands in the order of the help.
func commands() []*cli.Command {
	list := []*cli.Command{
		runcmd.Command(), servecmd.Serve(), inspectcmd.Show(),
		storecmd.Pull(), storecmd.Create(), storecmd.Import(), storecmd.List(), storecmd.Cp(), storecmd.Rm(), storecmd.GC(),
		servecmd.Ps(), servecmd.Stop(),
		measurecmd.Doctor(), measurecmd.Bench(), measurecmd.Eval(),
		inspectcmd.Tokenize(), inspectcmd.Template(), inspectcmd.Media(),
		completionCommand(), manCommand(), versionCommand(),
	}
	for _, c := range list {
		addLogFlags(c)
	}
	return list
}

// unknownCommand is the error for a word that is no command.
func unknownCommand(word string, list []*cli.Command) error {
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	last := len(names) - 1
	return usage.Errorf("unknown command %q, want %s or %s", word, strings.Join(names[:last], ", "), names[last])
}

// exitCodes are the exit statuses and what they mean, for help, man page and docs.
var exitCodes = [...]struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitError, "what fails later, one line on standard error: a file that is missing, broken or no file, a model that is not supported or does not fit, a GPU that is not there, a request that can not be answered, a disk that is full"},
	{exitUsage, "wrong usage, told before a file is looked at: an unknown command or option, a value that makes no sense for any model on this machine, or is empty"},
	{exitInterrupted, "interrupted by ctrl-C or a signal"},
}

// flagInfo is an option of a command as completion and man page show it.
type flagInfo struct {
	names      []string // without dashes, the long one first
	usage      string
	value      string // placeholder of the value; empty for a switch
	defaultsTo string
}

// flagsOf lists the options that are not hidden, without --help, which every
// command has.
func flagsOf(flags []cli.Flag) []flagInfo {
	var list []flagInfo
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() || f.Names()[0] == "help" {
			continue
		}
		d, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		info := flagInfo{names: slices.Clone(f.Names()), usage: d.GetUsage()}
		if d.TakesValue() {
			info.value = "VALUE"
			if before, rest, ok := strings.Cut(info.usage, "`"); ok {
				if name, after, ok := strings.Cut(rest, "`"); ok {
					info.value, info.usage = name, before+name+after
				}
			}
			info.defaultsTo = d.GetDefaultText()
		}
		list = append(list, info)
	}
	return list
}

// dashed writes a name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
