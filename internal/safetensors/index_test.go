package safetensors

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestParseIndexRefuses(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"empty", ``, "json ends early"},
		{"not an object", `[]`, "index: found [, want {"},
		{"not utf-8", "{\"\xff\":0}", "utf-8"},
		{"ends early", `{"weight_map":{"a":"b"`, "json ends early"},
		{"ends in a skipped value", `{"metadata":{"a":[`, "json ends early"},
		{"text after it", `{"weight_map":{"a":"b"}}x`, "after the json object"},
		{"no weight_map", `{"metadata":{}}`, "weight_map is absent or empty"},
		{"empty weight_map", `{"weight_map":{}}`, "weight_map is absent or empty"},
		{"weight_map is null", `{"weight_map":null}`, "weight_map: found null, want {"},
		{"weight_map twice", `{"weight_map":{"a":"b"},"weight_map":{"c":"b"}}`, `"weight_map" appears twice`},
		{"tensor twice", `{"weight_map":{"a":"b","a":"c"}}`, `"a" appears twice`},
		{"shard is a number", `{"weight_map":{"a":1}}`, "tensor a: found 1, want a string"},
		{"shard is empty", `{"weight_map":{"a":""}}`, "not a plain file name"},
		{"shard is .", `{"weight_map":{"a":"."}}`, "not a plain file name"},
		{"shard is ..", `{"weight_map":{"a":".."}}`, "not a plain file name"},
		{"shard above", `{"weight_map":{"a":"../x.safetensors"}}`, "not a plain file name"},
		{"shard below", `{"weight_map":{"a":"d/x.safetensors"}}`, "not a plain file name"},
		{"shard absolute", `{"weight_map":{"a":"/etc/passwd"}}`, "not a plain file name"},
		{"shard with a backslash", `{"weight_map":{"a":"d\\x"}}`, "not a plain file name"},
		{"shard on a drive", `{"weight_map":{"a":"c:x"}}`, "not a plain file name"},
		{"shard with a zero byte", `{"weight_map":{"a":"x\u0000"}}`, "not a plain file name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseIndex([]byte(tt.text))
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a FormatError with %q", err, tt.want)
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	real, err := os.ReadFile("../../testdata/inkling-tiny/" + IndexName)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	f.Add(indexOf("a", "1.safetensors", "b", "2.safetensors"))
	f.Add([]byte(`{"weight_map":{"a":"../b"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ix, err := parseIndex(b)
		if err != nil {
			var format *FormatError
			if !errors.As(err, &format) {
				t.Fatalf("error %v is no FormatError", err)
			}
			return
		}
		if len(ix.names) == 0 || len(ix.names) != len(ix.shardOf) {
			t.Errorf("%d names, %d in the map", len(ix.names), len(ix.shardOf))
		}
		for _, name := range ix.names {
			if shard := ix.shardOf[name]; shard == "" || shard == ".." || strings.Contains(shard, "/") {
				t.Errorf("tensor %q in %q", name, shard)
			}
		}
	})
}
