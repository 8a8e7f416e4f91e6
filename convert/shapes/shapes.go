// Package shapes has the configs of published models, for making models of their
// shape without their weights, and small vocabularies to go with them.
package shapes

import (
	"embed"
	"strings"
)

//go:embed *.json vocab
var files embed.FS

// Config returns the config.json of a shape by its name, such as "inkling-small".
func Config(name string) ([]byte, bool) {
	data, err := files.ReadFile(name + ".json")
	return data, err == nil
}

// Names returns the names of all shapes.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // the files are part of the program
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Vocabulary returns the tokenizer's files, by name, of a small vocabulary for models
// with this model_type. They are of the family's form but not its published
// vocabulary: a model with them is for measuring.
func Vocabulary(modelType string) map[string][]byte {
	family := "inkling-"
	if strings.HasPrefix(modelType, "kimi") || strings.HasPrefix(modelType, "deepseek") {
		family = "kimi-"
	}
	entries, err := files.ReadDir("vocab")
	if err != nil {
		return nil
	}
	list := make(map[string][]byte)
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), family); ok {
			list[name], _ = files.ReadFile("vocab/" + e.Name())
		}
	}
	return list
}
