package jinja

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readVars reads JSON with the members of objects in their order.
func readVars(t testing.TB, data []byte) *Dict {
	t.Helper()
	r := &run{budget: newBudget(Limits{})}
	v := filterFromJSON(r, arguments{list: []Value{string(data)}})
	d, ok := v.(*Dict)
	if !ok {
		t.Fatalf("variables are %T", v)
	}
	return d
}

func vars(d *Dict) map[string]Value {
	m := map[string]Value{}
	for _, k := range d.keys {
		m[k] = d.values[k]
	}
	return m
}

// lenient are templates that Jinja2 refuses and this package does not, with what they print.
var lenient = map[string]string{
	"{{ n.foo.bar }}": "",
}

// TestReference compares with what Jinja2 itself prints (testdata/reference.py).
func TestReference(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vars  json.RawMessage
		Cases []struct {
			Template string
			Want     *string
			Error    string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 50 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for i, c := range file.Cases {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			got, err := render(c.Template, vars(readVars(t, file.Vars)), Limits{})
			want, ok := lenient[c.Template]
			if ok {
				c.Want = &want
			}
			if c.Want == nil {
				if err == nil {
					t.Errorf("%s\ngives %q, Jinja2 says %q", c.Template, got, c.Error)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", c.Template, err)
			}
			if d := cmp.Diff(*c.Want, got); d != "" {
				t.Errorf("%s\n(-Jinja2 +got):\n%s", c.Template, d)
			}
		})
	}
}

func render(template string, vars map[string]Value, l Limits) (string, error) {
	t, err := Compile(template)
	if err != nil {
		return "", err
	}
	return t.Render(vars, l)
}
