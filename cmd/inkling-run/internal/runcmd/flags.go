package runcmd

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/internal/engine"
)

// runFlags returns the options of run.
func runFlags() []cli.Flag {
	const theModels = "the model's"
	return slices.Concat(flags.Attach(), flags.Media(), flags.Layout(), flags.Draft(), flags.Device(), []cli.Flag{
		&cli.StringFlag{Name: "system", Usage: "system message `TEXT`"},
		&cli.StringFlag{Name: "effort", Usage: "how long to think: `LEVEL` none, minimal, low, medium, high, xhigh, max, or a number from 0 to 0.99", DefaultText: "high"},
		&cli.StringFlag{Name: "messages", Usage: "the conversation in JSON `FILE`, - for standard input, in place of a prompt: a list of messages, or a chat request with its settings; paths in it count from its folder"},
		&cli.BoolFlag{Name: "raw", Usage: "take the prompt as it is, without a chat template; special tokens in it count"},

		&cli.IntFlag{Name: "n", Aliases: []string{"max-tokens"}, Value: -1, Usage: "generate at most `N` tokens", DefaultText: "until the model stops"},
		&cli.Float64Flag{Name: "temp", Usage: "temperature `X`; 0 always takes the likeliest token", DefaultText: theModels},
		&cli.IntFlag{Name: "top-k", Usage: "sample from the `K` likeliest tokens, 0 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "top-p", Usage: "sample from the likeliest tokens that have probability `P` together, 1 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "min-p", Usage: "sample from tokens with at least `P` times the likeliest one's probability, 0 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "repeat-penalty", Usage: "weaken the last 64 tokens by factor `X`, 1 for off", DefaultText: theModels},
		&cli.Float64Flag{Name: "presence-penalty", Usage: "take `X` from the logits of tokens that the answer has", DefaultText: theModels},
		&cli.Float64Flag{Name: "frequency-penalty", Usage: "take `X` from them for each time that it has them", DefaultText: theModels},
		&cli.StringSliceFlag{Name: "logit-bias", Usage: "`ID=X`: add X to the logit of a token; may be given again"},
		&cli.StringSliceFlag{Name: "stop", Usage: "end the answer before `TEXT`; may be given again", DefaultText: theModels},
		&cli.Int64Flag{Name: "seed", Value: -1, Usage: "`N` for random numbers; the same one gives the same answer", DefaultText: "a new one each time"},

		&cli.StringFlag{Name: "format", Usage: "hold the answer to `FORMAT`: json, or a file with a JSON schema or, named .gbnf, a grammar"},
		&cli.StringFlag{Name: "tools", Usage: "tell the model of the tools in JSON `FILE`, as OpenAI's API has them"},
		&cli.StringFlag{Name: "tool-exec", Usage: "carry out calls of tools by the shell command `CMD`, which gets name and arguments as JSON and prints the result; asks before each"},
		&cli.BoolFlag{Name: "yes", Usage: "carry out calls of tools without asking"},
		&cli.IntFlag{Name: "tool-rounds", Value: 10, Usage: "let the model call tools up to `N` times in an answer"},
		&cli.DurationFlag{Name: "tool-timeout", Value: time.Minute, Usage: "give a call of a tool `TIME`"},

		&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "compute with `N` threads", DefaultText: "one per core"},
		&cli.IntFlag{Name: "ctx-size", Aliases: []string{"c"}, Usage: "room for `N` tokens of prompt and answer", DefaultText: fmt.Sprintf("the model's, at most %d", engine.DefaultContext)},
		&cli.IntFlag{Name: "batch-size", Aliases: []string{"b"}, Usage: "upper bound `N` of --ubatch-size", DefaultText: "2048"},
		&cli.IntFlag{Name: "ubatch-size", Usage: "compute `N` tokens of the prompt at a time", DefaultText: "512, on CUDA up to --batch-size"},
		&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
		&cli.BoolFlag{Name: "no-mmap", Usage: "copy the weights into memory and do not map the file"},
		&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` for media, or off", DefaultText: "the one beside the model"},

		&cli.BoolFlag{Name: "json", Usage: "print the whole result as one JSON object"},
		&cli.BoolFlag{Name: "show-special", Usage: "print every token that the model makes, special ones too"},
		&cli.BoolFlag{Name: "hide-thinking", Usage: "do not print what the model thinks"},
		&cli.BoolFlag{Name: "no-markdown", Usage: "on a terminal, print the answer as it is written"},
		&cli.BoolFlag{Name: "no-history", Usage: "do not keep what is typed in a chat"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print speeds, a terminal or not, and memory to standard error"},
	})
}
