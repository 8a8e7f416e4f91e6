package inkling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
)

// model is the GGUF file that the examples run, converted from the checkpoint
// in testdata before they start.
var model string

func ExampleOpen() {
	ctx := context.Background()
	s, err := inkling.Open(ctx, model, inkling.Config{Threads: 1, Context: 2048})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	question := inkling.User(inkling.ImageFile("testdata/inkling-tiny-eval/media/000_0.png"), inkling.Text("Describe the picture."))
	for d, err := range s.Generate(ctx, []inkling.Message{question}, inkling.Options{Temperature: new(0.0)}) {
		if err != nil {
			log.Fatal(err)
		}
		if d.Kind == inkling.ContentDelta {
			fmt.Print(d.Text)
		}
	}
	fmt.Println()
	// Output: A pink cross.
}

func ExampleSession_Generate_tools() {
	ctx := context.Background()
	s, err := inkling.Open(ctx, model, inkling.Config{Threads: 1, Context: 2048})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	timer := json.RawMessage(`{"type":"function","function":{"name":"set_timer","description":"Start a timer.",` +
		`"parameters":{"type":"object","properties":{"minutes":{"type":"integer"}},"required":["minutes"]}}}`)
	o := inkling.Options{Temperature: new(0.0), Tools: []json.RawMessage{timer}}
	messages := []inkling.Message{inkling.User(inkling.Text("Set a timer for 73 minutes."))}
	answer, _, err := inkling.Answer(s.Generate(ctx, messages, o))
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range answer.ToolCalls {
		fmt.Println(call.Name, string(call.Arguments))
		messages = append(messages, answer, inkling.ToolResult(call, `{"status":"started"}`))
	}
	answer, done, err := inkling.Answer(s.Generate(ctx, messages, o))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text())
	fmt.Println(done.FinishReason)
	// Output:
	// set_timer {"minutes":73}
	// The timer is set for 73 minutes.
	// stop
}

func TestMain(m *testing.M) { os.Exit(withModel(m)) }

// withModel converts the model for the examples and runs the tests.
func withModel(m *testing.M) int {
	dir, err := os.MkdirTemp("", "inkling")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	_, err = convert.Run(context.Background(), convert.Options{
		Dir: filepath.Join("testdata", "inkling-tiny"), OutDir: dir, Name: "inkling-tiny", OutType: "bf16", NoMTP: true,
	})
	if err != nil {
		log.Print(err)
		return 1
	}
	model = filepath.Join(dir, "inkling-tiny-BF16.gguf")
	return m.Run()
}
