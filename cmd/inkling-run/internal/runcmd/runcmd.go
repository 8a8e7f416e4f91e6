// Package runcmd has the command run: its options, and the request that they and the
// input make.
package runcmd

import (
	"context"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/repl"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

const runDescription = `MODEL is a GGUF file, or the folder of a checkpoint, which is converted into
the user's cache folder first and found there the next time, or the name of a
model in the store (inkling-run list), or hf.co/ORG/REPO[:QUANT], which is pulled
into the store. The projector for media (mmproj*.gguf) beside the model is found
by itself. A model of the store brings settings along, below those given here.

Pictures, sounds and videos stand before the prompt in the order of the options.
WAV, FLAC, Ogg Vorbis and MP3 are read without help, as are animations (GIF, PNG,
WebP) and numbered pictures as videos; other sounds and videos need ffmpeg.

A Kimi model gets a video in chunks of a few frames with their times, or as one
clip, as its file or --video-layout says. The layout samples the frames of
animations and video files; numbered pictures are taken as they are, at 2 a
second unless --video-fps or FILE:fps=F says otherwise. An Inkling model gets
pairs of neighbouring frames with their times, which is experimental; inkling-run
media shows them.

The prompt is what comes by standard input, if that is a pipe or a file, and
then the arguments. Without one, on a terminal, a chat begins: /? lists its
commands, ctrl-C stops an answer, ctrl-D leaves.

The answer goes to standard output as it comes, after what the model thought,
which stands between lines "Thinking..." and "...done thinking.". On a terminal
Markdown is laid out, a block when it is complete; --no-markdown and NO_COLOR
leave the answer as it is written. A tool call is a line of JSON. Speeds go to
standard error, if that is a terminal or with -v.

--messages takes a chat request too: max_tokens, temperature, top_p, stop, seed,
tools, tool_choice, response_format and so on count unless the option for it is
given; what is not used is named in a warning.

With --tool-exec the tools of --tools are carried out: CMD, run by sh, gets
{"name":...,"arguments":...} on standard input and prints the result. Each call is
shown and asked about on the terminal, or carried out with --yes. What fails or
takes longer than --tool-timeout is an error that the model is told.

With --json there is one object on standard output and nothing else: text,
reasoning, tool_calls, token_ids, prompt_token_ids, finish_reason (stop, length,
tool_calls), usage, timings, seed; with --tool-exec the messages that were added,
and the rest about the last answer.

Settings of sampling that are not given are those that the model's file
recommends.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Command answers a prompt, or chats.
func Command() *cli.Command {
	return &cli.Command{
		Name:            "run",
		Usage:           "answer a prompt about text, pictures, sound and video, or chat",
		UsageText:       "inkling-run run MODEL [PROMPT...] [options]",
		Description:     runDescription,
		HideHelpCommand: true,
		Flags:           runFlags(),
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			o, err := optionsFrom(c)
			if err != nil {
				return err
			}
			if o.chat {
				return runChat(c.Context, o)
			}
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error { return runOnce(ctx, o) })
		},
	}
}

// runOnce answers one prompt.
func runOnce(ctx context.Context, o *options) error {
	if err := o.readInput(); err != nil {
		return err
	}
	s, err := session.Open(ctx, &o.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	asked := o.Request.Conversation
	conv, res, err := s.Converse(ctx, asked)
	if err != nil {
		return o.blame(err)
	}
	if !o.JSON {
		return nil
	}
	r := session.NewResult(res, s)
	if err := r.AddDevices(ctx, s.Engine); err != nil {
		return err
	}
	if o.Tools.Exec != "" {
		r.Messages = conversation.Messages(conv.Messages[len(asked.Messages):])
	}
	return session.PrintResult(o.Stdout, r)
}

// runChat loads the model and talks until the user leaves.
func runChat(ctx context.Context, o *options) error {
	var s *session.Session
	err := interrupt.RunOrLeave(ctx, func(ctx context.Context) (err error) {
		s, err = session.Open(ctx, &o.Options)
		return err
	})
	if err != nil {
		return err
	}
	defer s.Close()
	return repl.New(s).Loop(ctx)
}
