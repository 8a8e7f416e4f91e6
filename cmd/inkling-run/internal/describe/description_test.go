package describe

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
)

// TestJSONValue has the floats that JSON has no numbers for.
func TestJSONValue(t *testing.T) {
	in := map[string]any{
		"nan": math.NaN(), "inf": float32(math.Inf(-1)), "array": []float32{1.5, float32(math.NaN())},
		"bytes": []uint8{1, 2}, "float": float32(0.1), "text": "x",
	}
	for key, v := range in {
		in[key] = JSONValue(v)
	}
	var b strings.Builder
	if err := report.JSON(&b, in); err != nil {
		t.Fatal(err)
	}
	const want = `{"array":[1.5,"NaN"],"bytes":[1,2],"float":0.1,"inf":"-Inf","nan":"NaN","text":"x"}` + "\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
