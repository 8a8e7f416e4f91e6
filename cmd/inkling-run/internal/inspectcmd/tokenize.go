package inspectcmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

const tokenizeDescription = `MODEL is a GGUF file, the folder of a checkpoint or a name of the store; only its
tokenizer is read.
TEXT is what comes by standard input, if that is a pipe or a file, and then the
arguments. There is a line for each token, its id and what it spells in quotes,
and the number of tokens on the last one.

Text is text, whatever it spells: <|im_end|> becomes the tokens of its characters.
With --special it becomes the control token.`

// Tokenize shows the tokens of a text.
func Tokenize() *cli.Command {
	return &cli.Command{
		Name:            "tokenize",
		Usage:           "print the token ids of a text",
		UsageText:       "inkling-run tokenize MODEL [TEXT...] [--special] [--ids] [--json]",
		Description:     tokenizeDescription,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "special", Usage: "take the strings of special tokens for these tokens"},
			&cli.BoolFlag{Name: "ids", Usage: "print the ids only, on one line"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object: count and tokens with id, piece, bytes (base64, where it is no text), special"},
		},
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usage.Errorf("no model; inkling-run tokenize --help says more")
			}
			if c.Bool("ids") && c.Bool("json") {
				return usage.Errorf("--ids and --json do not go together")
			}
			v, err := openVocabulary(c.Args().First())
			if err != nil {
				return err
			}
			text, err := files.ReadPrompt(c.Args().Tail(), c.App.Reader, c.App.ErrWriter, true)
			if err != nil {
				return err
			}
			encode := v.Encode
			if c.Bool("special") {
				encode = v.EncodeWithSpecial
			}
			return printTokens(c, v, encode(text))
		},
	}
}

// printTokens writes ids in the form that the options want.
func printTokens(c *cli.Context, v *vocabulary, ids []int32) error {
	switch {
	case c.Bool("json"):
		return report.JSON(c.App.Writer, struct {
			Count  int     `json:"count"`
			Tokens []piece `json:"tokens"`
		}{len(ids), v.pieces(ids)})
	case c.Bool("ids"):
		return printIDs(c.App.Writer, ids)
	}
	if err := tokenTable(c.App.Writer, v.pieces(ids)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.App.Writer, "%d tokens\n", len(ids))
	return err
}

// tokenTable writes one token a line.
func tokenTable(w io.Writer, list []piece) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, p := range list {
		spelled := strconv.Quote(p.Piece)
		switch {
		case p.Bytes != nil:
			spelled = strconv.Quote(string(p.Bytes))
		case p.Special:
			spelled = report.Printable(p.Piece)
		}
		fmt.Fprintf(t, "%d\t  %s\n", p.ID, spelled)
	}
	return t.Flush()
}

// printIDs writes ids on one line.
func printIDs(w io.Writer, ids []int32) error {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(int(id))
	}
	_, err := fmt.Fprintln(w, strings.Join(words, " "))
	return err
}

// validText replaces bytes that are no UTF-8.
func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
