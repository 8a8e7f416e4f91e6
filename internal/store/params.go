package store

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Params are settings that a model brings along, with Ollama's names. Nil is left
// to the program that runs it.
type Params struct {
	Temperature      *float64 `json:"temperature,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	MinP             *float64 `json:"min_p,omitempty"`
	RepeatPenalty    *float64 `json:"repeat_penalty,omitempty"`
	RepeatLastN      *int     `json:"repeat_last_n,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	Seed             *int     `json:"seed,omitempty"`
	NumCtx           *int     `json:"num_ctx,omitempty"`     // room for prompt and answer, in tokens
	NumPredict       *int     `json:"num_predict,omitempty"` // tokens of an answer at most; below 0: no limit
	NumBatch         *int     `json:"num_batch,omitempty"`   // tokens of the prompt at a time
	NumThread        *int     `json:"num_thread,omitempty"`
	Stop             []string `json:"stop,omitempty"`
}

// bound is the range of a parameter's values.
type bound struct {
	low, high float64
	open      bool // low itself is none of them
}

// bounds are the values that parameters may have, by their names.
var bounds = map[string]bound{
	"temperature":       {0, math.MaxFloat32, false},
	"top_k":             {0, math.MaxInt32, false},
	"top_p":             {0, 1, true},
	"min_p":             {0, 1, false},
	"repeat_penalty":    {0, math.MaxFloat32, true},
	"repeat_last_n":     {-1, math.MaxInt32, false},
	"presence_penalty":  {-2, 2, false},
	"frequency_penalty": {-2, 2, false},
	"seed":              {-1, math.MaxInt64, false},
	"num_ctx":           {1, math.MaxInt32, false},
	"num_predict":       {-2, math.MaxInt32, false},
	"num_batch":         {1, math.MaxInt32, false},
	"num_thread":        {0, math.MaxInt32, false},
}

// maxStops bounds the sequences that end an answer.
const maxStops = 64

// ParamNames lists the parameters that are known.
func ParamNames() []string {
	t := reflect.TypeFor[Params]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// Set reads a value as a Modelfile has it. A second one of stop is another
// sequence; of the others the last one holds.
func (p *Params) Set(name, text string) error {
	f, ok := p.field(name)
	if !ok {
		return fmt.Errorf("parameter %q is not known; these are: %s", name, strings.Join(ParamNames(), ", "))
	}
	switch v := f.Interface().(type) {
	case []string:
		if text == "" {
			return fmt.Errorf("parameter %s is empty", name)
		}
		if len(v) == maxStops {
			return fmt.Errorf("parameter %s: more than %d", name, maxStops)
		}
		f.Set(reflect.ValueOf(append(v, text)))
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("parameter %s: %q is no whole number", name, text)
		}
		if err := inBounds(name, float64(n), text); err != nil {
			return err
		}
		f.Set(reflect.ValueOf(&n))
	case *float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("parameter %s: %q is no number", name, text)
		}
		if err := inBounds(name, x, text); err != nil {
			return err
		}
		f.Set(reflect.ValueOf(&x))
	}
	return nil
}

func inBounds(name string, x float64, text string) error {
	b := bounds[name]
	if x >= b.low && x <= b.high && !(b.open && x == b.low) {
		return nil
	}
	want := fmt.Sprintf("at least %v", b.low)
	if b.open {
		want = fmt.Sprintf("more than %v", b.low)
	}
	if b.high < math.MaxInt32 {
		want += fmt.Sprintf(" and at most %v", b.high)
	}
	return fmt.Errorf("parameter %s is %s, want %s", name, text, want)
}

// field finds a parameter by its name.
func (p *Params) field(name string) (reflect.Value, bool) {
	for i, n := range ParamNames() {
		if n == name {
			return reflect.ValueOf(p).Elem().Field(i), true
		}
	}
	return reflect.Value{}, false
}

// Each calls do with the name and the text of every value that is set, as a
// Modelfile has them.
func (p *Params) Each(do func(name, text string)) {
	for _, name := range ParamNames() {
		f, _ := p.field(name)
		switch v := f.Interface().(type) {
		case []string:
			for _, s := range v {
				do(name, s)
			}
		case *int:
			if v != nil {
				do(name, strconv.Itoa(*v))
			}
		case *float64:
			if v != nil {
				do(name, strconv.FormatFloat(*v, 'g', -1, 64))
			}
		}
	}
}

// over returns p with what is missing taken from base. Sequences that end an
// answer are those of p, if it has any.
func (p Params) over(base Params) Params {
	out := reflect.ValueOf(&p).Elem()
	for i := range out.NumField() {
		if out.Field(i).IsNil() {
			out.Field(i).Set(reflect.ValueOf(base).Field(i))
		}
	}
	return p
}

// check is for parameters that were read from a manifest.
func (p *Params) check() error {
	var q Params
	var bad error
	p.Each(func(name, text string) { bad = cmp.Or(bad, q.Set(name, text)) })
	return bad
}
