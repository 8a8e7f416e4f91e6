package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

const completionDescription = `Prints a script that makes the shell complete commands, options and files:

  bash  inkling-run completion bash > ~/.local/share/bash-completion/completions/inkling-run
  zsh   inkling-run completion zsh > "${fpath[1]}/_inkling-run"
  fish  inkling-run completion fish > ~/.config/fish/completions/inkling-run.fish`

// completionCommand prints the completion of a shell.
func completionCommand() *cli.Command {
	shells := map[string]func(io.Writer, []*cli.Command) error{
		"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
	}
	return &cli.Command{
		Name:            "completion",
		Usage:           "print the completion script for a shell",
		UsageText:       "inkling-run completion bash|zsh|fish",
		Description:     completionDescription,
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			write, ok := shells[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return usage.Errorf("completion %s: want one of bash, zsh, fish", strings.Join(c.Args().Slice(), " "))
			}
			return write(c.App.Writer, c.App.Commands)
		},
	}
}

// bashCompletion writes a function over the words of the line. The options of a
// command stand in a case of their own.
func bashCompletion(w io.Writer, list []*cli.Command) error {
	var b bytes.Buffer
	b.WriteString("# bash completion for inkling-run\n_inkling_run() {\n" +
		"    local cur=${COMP_WORDS[COMP_CWORD]} words=\n" +
		"    COMPREPLY=()\n" +
		"    if [[ $COMP_CWORD -eq 1 ]]; then\n")
	fmt.Fprintf(&b, "        COMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n        return\n    fi\n", strings.Join(commandNames(list), " "))
	b.WriteString("    case ${COMP_WORDS[1]} in\n")
	for _, c := range list {
		var words []string
		for _, f := range flagsOf(c.Flags) {
			for _, n := range f.names {
				words = append(words, dashed(n))
			}
		}
		fmt.Fprintf(&b, "        %s) words='%s' ;;\n", c.Name, strings.Join(append(words, "--help"), " "))
	}
	b.WriteString("    esac\n" +
		"    if [[ $cur == -* ]]; then\n" +
		"        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n" +
		"    else\n" +
		"        compopt -o filenames 2>/dev/null\n" +
		"        COMPREPLY=($(compgen -f -- \"$cur\"))\n" +
		"    fi\n}\n" +
		"complete -F _inkling_run inkling-run\n")
	_, err := w.Write(b.Bytes())
	return err
}

// zshCompletion writes what _arguments wants, with a help text for each option.
func zshCompletion(w io.Writer, list []*cli.Command) error {
	var b bytes.Buffer
	b.WriteString("#compdef inkling-run\n\n_inkling_run() {\n    local -a commands\n    commands=(\n")
	for _, c := range list {
		fmt.Fprintf(&b, "        %s\n", shellQuote(c.Name+":"+c.Usage))
	}
	b.WriteString("    )\n" +
		"    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n" +
		"    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "        %s) _arguments -S", c.Name)
		for _, f := range flagsOf(c.Flags) {
			for _, n := range f.names {
				spec := dashed(n) + "[" + zshText(f.usage) + "]"
				if f.value != "" {
					spec += ":" + zshText(strings.ToLower(f.value)) + ":"
					if f.value == "FILE" || f.value == "DIR" || f.value == "OUT" {
						spec += "_files"
					}
				}
				fmt.Fprintf(&b, " \\\n            %s", shellQuote(spec))
			}
		}
		b.WriteString(" \\\n            '*:file:_files' ;;\n")
	}
	b.WriteString("    esac\n}\n\n_inkling_run \"$@\"\n")
	_, err := w.Write(b.Bytes())
	return err
}

// zshText escapes what ends a text in the specifications of _arguments.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

// fishCompletion writes one complete line for each command and option.
func fishCompletion(w io.Writer, list []*cli.Command) error {
	var b bytes.Buffer
	b.WriteString("# fish completion for inkling-run\n")
	fmt.Fprintf(&b, "set -l commands %s\n", strings.Join(commandNames(list), " "))
	for _, c := range list {
		fmt.Fprintf(&b, "complete -c inkling-run -f -n \"not __fish_seen_subcommand_from $commands\" -a %s -d %s\n", c.Name, shellQuote(c.Usage))
	}
	for _, c := range list {
		for _, f := range flagsOf(c.Flags) {
			fmt.Fprintf(&b, "complete -c inkling-run -n '__fish_seen_subcommand_from %s'", c.Name)
			for _, n := range f.names {
				if len(n) == 1 {
					fmt.Fprintf(&b, " -s %s", n)
				} else {
					fmt.Fprintf(&b, " -l %s", n)
				}
			}
			if f.value != "" {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", shellQuote(f.usage))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func commandNames(list []*cli.Command) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return names
}

// shellQuote makes one word of s for bash, zsh and fish alike.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
