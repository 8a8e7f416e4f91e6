package inspectcmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/token"
)

const templateDescription = `Prints the prompt that the model gets for a conversation, with the control tokens
as they are spelled. The conversation is PROMPT as a message of the user, or comes
from --messages FILE (- for standard input): a list of messages, or an object with
messages and tools. MODEL is a GGUF file, the folder of a checkpoint or a name of the
store; only its tokenizer and chat template are read, so that each medium is one
placeholder.

--ids prints the ids on one line, --tokens one token a line.`

// Template shows the prompt of a conversation.
func Template() *cli.Command {
	return &cli.Command{
		Name:            "template",
		Usage:           "print the prompt that a conversation becomes",
		UsageText:       "inkling-run template MODEL [PROMPT...] [--messages FILE] [--effort LEVEL] [--ids|--tokens|--json]",
		Description:     templateDescription,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "messages", Usage: "the conversation in JSON `FILE`, - for standard input"},
			&cli.StringFlag{Name: "system", Usage: "system message `TEXT`"},
			&cli.StringFlag{Name: "effort", Usage: "how long to think: `LEVEL` none to max, or a number from 0 to 0.99", DefaultText: "high"},
			&cli.BoolFlag{Name: "no-generation-prompt", Usage: "end with the last message, not with the beginning of the answer"},
			&cli.BoolFlag{Name: "ids", Usage: "print the ids only, on one line"},
			&cli.BoolFlag{Name: "tokens", Usage: "print one token a line"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object: renderer, prompt, count, tokens"},
		},
		OnUsageError: usage.OnError,
		Action:       templateAction,
	}
}

func templateAction(c *cli.Context) error {
	conv, err := templateConversation(c)
	if err != nil {
		return err
	}
	path := c.Args().First()
	v, err := openVocabulary(path)
	if err != nil {
		return err
	}
	r, kind, err := v.renderer(path)
	if err != nil {
		return err
	}
	segs, media, err := r.Render(conv, chat.Options{Effort: c.String("effort"), AddGenerationPrompt: !c.Bool("no-generation-prompt")})
	if err != nil {
		return err
	}
	ids, err := v.encode(segs, media)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	prompt := chat.Spell(v.Vocab, segs, media)
	switch {
	case c.Bool("json"):
		return report.JSON(c.App.Writer, struct {
			Renderer string  `json:"renderer"`
			Prompt   string  `json:"prompt"`
			Count    int     `json:"count"`
			Tokens   []piece `json:"tokens"`
		}{kind, prompt, len(ids), v.pieces(ids)})
	case c.Bool("ids"):
		return printIDs(c.App.Writer, ids)
	case c.Bool("tokens"):
		return tokenTable(c.App.Writer, v.pieces(ids))
	}
	_, err = fmt.Fprintln(c.App.Writer, prompt)
	return err
}

// templateConversation checks the command line and reads the conversation.
func templateConversation(c *cli.Context) (chat.Conversation, error) {
	var none chat.Conversation
	file := c.String("messages")
	forms := 0
	for _, name := range []string{"ids", "tokens", "json"} {
		if c.Bool(name) {
			forms++
		}
	}
	switch _, err := chat.ParseEffort(c.String("effort")); {
	case c.NArg() == 0:
		return none, usage.Errorf("no model; inkling-run template --help says more")
	case err != nil:
		return none, usage.Errorf("--effort: %w", err)
	case forms > 1:
		return none, usage.Errorf("--ids, --tokens and --json do not go together")
	case file != "" && c.NArg() > 1:
		return none, usage.Errorf("--messages and a prompt do not go together")
	case file != "" && c.IsSet("system"):
		return none, usage.Errorf("--messages and --system do not go together")
	}
	if file != "" {
		return readConversation(c, file)
	}
	text, err := files.ReadPrompt(c.Args().Tail(), c.App.Reader, c.App.ErrWriter, false)
	if err != nil {
		return none, err
	}
	if text == "" {
		return none, usage.Errorf("no prompt, and no --messages")
	}
	if system := c.String("system"); system != "" {
		none.Messages = append(none.Messages, conversation.TextMessage(chat.System, nil, system))
	}
	none.Messages = append(none.Messages, conversation.TextMessage(chat.User, nil, text))
	return none, nil
}

// readConversation reads messages from a file or standard input.
func readConversation(c *cli.Context, file string) (conv chat.Conversation, err error) {
	in, name := c.App.Reader, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return conv, err
		}
		defer f.Close()
		in, name = f, file
	}
	data, err := files.ReadBounded(name, in)
	if err != nil {
		return conv, err
	}
	if conv, err = chat.ParseMessages(data); err == nil && len(conv.Messages) == 0 {
		err = errors.New("no messages")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return conv, err
}

// encode gives each medium one placeholder: how many rows it takes depends on its
// content, which is not read.
func (v *vocabulary) encode(segs []token.Segment, media []chat.Part) ([]int32, error) {
	var missing error
	ids, _, err := v.EncodeSegments(segs, func(m int) (int32, int) {
		id, ok := chat.SlotID(v.Vocab, media[m].Kind)
		if !ok {
			missing = fmt.Errorf("the vocabulary has no placeholder for %s", media[m].Kind)
		}
		return id, 1
	})
	return ids, errors.Join(missing, err)
}
