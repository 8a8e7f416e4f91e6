package convert

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// quantVersion is general.quantization_version, GGML_QNT_VERSION of ggml.h.
const quantVersion = uint32(2)

// general returns the general.* keys of a file as gguf-py writes them.
func general(src *Source, f File, title string, fileType uint32) ([]KV, error) {
	kv := []KV{
		{"general.architecture", f.Arch},
		{"general.type", generalType(f.Kind)},
	}
	if f.Kind == Text {
		sampling, err := samplingDefaults(src)
		if err != nil {
			return nil, err
		}
		kv = append(kv, sampling...)
	}
	text, err := readCard(src)
	if err != nil {
		return nil, err
	}
	card := frontMatter(text)
	kv = append(kv, KV{"general.name", title}, KV{"general.size_label", sizeLabel(f.Tensors)})
	for _, l := range []struct{ key, field string }{
		{"general.license", "license"},
		{"general.license.name", "license_name"},
		{"general.license.link", "license_link"},
	} {
		if v := card[l.field]; v != "" {
			kv = append(kv, KV{l.key, v})
		}
	}
	kv = append(kv, origins(cardList(text, "base_model"))...)
	tags := cardList(text, "tags")
	if tag := card["pipeline_tag"]; tag != "" && !slices.Contains(tags, tag) {
		tags = append(tags, tag)
	}
	if tags != nil {
		kv = append(kv, KV{"general.tags", tags})
	}
	if languages := cardList(text, "language"); languages != nil {
		kv = append(kv, KV{"general.languages", languages})
	}
	return append(kv,
		KV{"general.file_type", fileType},
		KV{"general.quantization_version", quantVersion}), nil
}

// generalType returns general.type.
func generalType(k Kind) string {
	if k == MMProj {
		return string(k)
	}
	return "model"
}

// samplingDefaults translates generation_config.json to the general.sampling.*
// keys of llama.cpp. "do_sample": false is greedy decoding, which they spell as
// temperature 0.
func samplingDefaults(src *Source) ([]KV, error) {
	f, err := src.Optional("generation_config.json")
	if f == nil {
		return nil, err
	}
	var kv []KV
	if f.Has("top_k") {
		kv = append(kv, KV{"general.sampling.top_k", int32(f.Int("top_k"))})
	}
	for _, s := range []struct{ key, field string }{
		{"general.sampling.top_p", "top_p"},
		{"general.sampling.min_p", "min_p"},
	} {
		if f.Has(s.field) {
			kv = append(kv, KV{s.key, float32(f.Float(s.field))})
		}
	}
	switch {
	case !f.BoolOr(true, "do_sample"):
		kv = append(kv, KV{"general.sampling.temp", float32(0)})
	case f.Has("temperature"):
		kv = append(kv, KV{"general.sampling.temp", float32(f.Float("temperature"))})
	}
	if f.Has("repetition_penalty") {
		kv = append(kv, KV{"general.sampling.penalty_repeat", float32(f.Float("repetition_penalty"))})
	}
	return kv, f.Err()
}

// cardFiles are where a publisher may have put the model card.
var cardFiles = []string{"README.md", "MODEL_CARD.md"}

// maxCard bounds a model card.
const maxCard = 4 << 20

// readCard returns the text of the model card; empty if there is none.
func readCard(src *Source) (string, error) {
	for _, name := range cardFiles {
		data, err := readBounded(src.Path(name), maxCard)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		return string(data), err
	}
	return "", nil
}

// maxCardList is how many entries of a card's list are kept.
const maxCardList = 64

// cardList returns the entries of a list of the front matter, written over lines with
// dashes, in brackets, or as one value.
func cardList(card, name string) []string {
	if frontMatter(card) == nil {
		return nil
	}
	var list []string
	in := false
	for _, line := range strings.Split(strings.ReplaceAll(card, "\r\n", "\n"), "\n")[1:] {
		rest, found := strings.CutPrefix(line, name+":")
		entry, dash := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case line == "---" || len(list) == maxCardList:
			return list
		case found:
			in = true
			rest = strings.TrimSpace(rest)
			if inner, ok := strings.CutPrefix(rest, "["); ok {
				for _, v := range strings.Split(strings.TrimSuffix(inner, "]"), ",") {
					list = appendEntry(list, v)
				}
			} else {
				list = appendEntry(list, rest)
			}
		case in && dash:
			list = appendEntry(list, entry)
		default:
			in = false
		}
	}
	return list
}

// appendEntry appends an entry of a list without quotes, if there is one.
func appendEntry(list []string, v string) []string {
	if v = strings.Trim(strings.TrimSpace(v), `"'`); v != "" {
		list = append(list, v)
	}
	return list
}

// origins returns the keys about the models that a model was made from, which cards
// name as ORGANISATION/NAME.
func origins(models []string) []KV {
	if models == nil {
		return nil
	}
	kv := []KV{{"general.base_model.count", uint32(len(models))}}
	for i, m := range models {
		prefix := fmt.Sprintf("general.base_model.%d.", i)
		org, name, ok := strings.Cut(m, "/")
		if !ok {
			kv = append(kv, KV{prefix + "name", title(m)})
			continue
		}
		kv = append(kv, KV{prefix + "name", title(name)}, KV{prefix + "organization", title(org)},
			KV{prefix + "repo_url", "https://huggingface.co/" + m})
	}
	return kv
}

// frontMatter reads the scalars at the top level of a card's front matter.
func frontMatter(card string) map[string]string {
	lines := strings.Split(strings.ReplaceAll(card, "\r\n", "\n"), "\n")
	if lines[0] != "---" {
		return nil
	}
	values := make(map[string]string)
	for _, line := range lines[1:] {
		if line == "---" {
			return values
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		if ok && value != "" && !strings.ContainsAny(name, " \t#-") && !strings.ContainsAny(value[:1], "[{|>&*") {
			values[name] = value
		}
	}
	return nil // the block does not end: this is no front matter
}

// title makes a name for people from the name of a folder or repository: dashes
// become spaces, and words in lower case that are no version get a capital.
func title(name string) string {
	words := strings.Fields(strings.ReplaceAll(name, "-", " "))
	for i, w := range words {
		if w == strings.ToLower(w) && !version.MatchString(w) {
			r := []rune(w)
			r[0] = unicode.ToTitle(r[0])
			words[i] = string(r)
		}
	}
	return strings.Join(words, " ")
}

// version matches words such as v1.5 and 3b.
var version = regexp.MustCompile(`^(v\d+(\.\d+)*|\d.*)$`)

// sizeLabel describes the number of weights as gguf-py does: "35M", or for a
// mixture of experts "256x23B", the experts and the weights with one expert each.
func sizeLabel(tensors []Tensor) string {
	var whole, one float64 // with all experts, with one
	var experts, banks int64
	for _, t := range tensors {
		n := float64(t.Elems())
		whole += n
		if strings.Contains(t.Name, "_exps.") {
			e := t.Dims[len(t.Dims)-1]
			experts += e
			banks++
			n /= float64(e)
		}
		one += n
	}
	if banks == 0 {
		return rounded(whole)
	}
	return fmt.Sprintf("%dx%s", experts/banks, rounded(one))
}

// rounded writes a count with at least two digits and a unit.
func rounded(n float64) string {
	unit := "K"
	switch n /= 1e3; {
	case n >= 1e9:
		n, unit = n/1e9, "T"
	case n >= 1e6:
		n, unit = n/1e6, "B"
	case n >= 1e3:
		n, unit = n/1e3, "M"
	}
	digits := 0
	if whole := math.RoundToEven(n); whole < 1 {
		digits = 2
	} else if whole < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f%s", digits, n, unit)
}
