// Package parity holds what the tests measured against their references, and
// writes it as a report: docs/parity.md with its plot. It computes no error
// itself; make parity runs the tests and hands it their figures.
package parity

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Env names the environment variable with the path of the file that tests
// append their comparisons to. Without it they write nothing.
const Env = "INKLING_PARITY"

// ErrorOf is the Measure of comparisons element by element.
const ErrorOf = "error"

// Comparison is one comparison of a test: one line of the file.
type Comparison struct {
	Package  string `json:"package"` // import path within the module
	Test     string `json:"test"`    // with its subtests
	Name     string `json:"name"`    // what is compared; what follows ": " tells cases of one thing apart
	Device   string `json:"device,omitempty"`
	Hardware string `json:"hardware,omitempty"` // the device's own name

	Measure string `json:"measure"` // ErrorOf, or the name of Value
	Values  int    `json:"values"`  // compared elements

	// Of |got - want|, where Measure is ErrorOf.
	Max       Number    `json:"max,omitempty"`
	Mean      Number    `json:"mean,omitempty"`
	Tolerance Tolerance `json:"tolerance,omitzero"`

	// Of other measures.
	Value Number `json:"value,omitempty"`
	Limit Number `json:"limit,omitempty"`
}

// Tolerance is what a test allowed: |got - want| <= Abs + Rel*|want| for each
// element or, if Mean is not 0, that much in the mean. All zero: equal values.
type Tolerance struct {
	Abs  float64 `json:"abs,omitempty"`
	Rel  float64 `json:"rel,omitempty"`
	Mean float64 `json:"mean,omitempty"`
}

// String says the tolerance in a cell of the report.
func (t Tolerance) String() string {
	switch {
	case t.Mean != 0:
		return "mean " + limit(t.Mean)
	case t.Rel != 0 && t.Abs != 0:
		return limit(t.Abs) + " + " + limit(t.Rel) + "·abs(want)"
	case t.Rel != 0:
		return limit(t.Rel) + "·abs(want)"
	case t.Abs != 0:
		return limit(t.Abs)
	}
	return "exact"
}

// limit formats a tolerance for a cell of the report.
func limit(v float64) string { return short(strconv.FormatFloat(v, 'e', -1, 64)) }

// short makes 1e-4 of 1e-04 and 2 of 2e+00.
func short(s string) string {
	return strings.NewReplacer("e-0", "e-", "e+00", "", "e+0", "e").Replace(s)
}

// Number is a float64 whose JSON knows infinities and NaN: a failed comparison
// is a line as well.
type Number float64

// MarshalText implements encoding.TextMarshaler.
func (n Number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	*n = Number(v)
	return err
}

// Append adds one line to the file at path. Tests of several packages write to
// the file at once, so a line is one write.
func Append(path string, c Comparison) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Read returns the lines of r; an error names the line.
func Read(r io.Reader) ([]Comparison, error) {
	var cs []Comparison
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var c Comparison
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		cs = append(cs, c)
	}
	return cs, lines.Err()
}

// figure formats an error for a cell of the report.
func figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.IsNaN(v), math.IsInf(v, 0):
		return "**" + strconv.FormatFloat(v, 'g', -1, 64) + "**"
	}
	return short(strconv.FormatFloat(v, 'e', 1, 64))
}
