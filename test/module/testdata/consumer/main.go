// Command consumer is a program of another module: it converts the checkpoint in
// the folder that it is given and asks the model about a picture.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inkling-go/inkling"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
)

func main() {
	log.SetFlags(0)
	if err := answer(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func answer(testdata, out string) error {
	ctx := context.Background()
	_, err := convert.Run(ctx, convert.Options{
		Dir: filepath.Join(testdata, "inkling-tiny"), OutDir: out, Name: "tiny", OutType: "bf16", NoMTP: true,
	})
	if err != nil {
		return err
	}
	s, err := inkling.Open(ctx, filepath.Join(out, "tiny-BF16.gguf"), inkling.Config{Threads: 1, Context: 512})
	if err != nil {
		return err
	}
	defer s.Close()
	picture := inkling.ImageFile(filepath.Join(testdata, "inkling-tiny-eval", "media", "000_0.png"))
	question := inkling.User(picture, inkling.Text("Describe the picture."))
	m, _, err := inkling.Answer(s.Generate(ctx, []inkling.Message{question}, inkling.Options{Temperature: new(0.0)}))
	if err != nil {
		return err
	}
	fmt.Println(m.Text())
	return nil
}
