package kimik25

import (
	"os"
	"testing"

	"github.com/inkling-go/inkling/convert"
)

// FuzzConfig reads any config.json: a config within the bounds, or an error.
func FuzzConfig(f *testing.F) {
	for _, path := range []string{tiny, tinyRandom} {
		data, err := os.ReadFile(path + "/config.json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model_type":"kimi_k25","text_config":{"num_hidden_layers":1e300,"rope_scaling":{"type":"yarn"}}}`))
	f.Add([]byte(`{"model_type":"deepseek_v3","num_hidden_layers":1,"n_routed_experts":-1,"eos_token_id":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := convert.ParseFields("config.json", data)
		if err != nil {
			return
		}
		c, err := parseConfig(fields)
		if err == nil && (c.text.numHiddenLayers < 1 || c.text.numHiddenLayers > maxLayers) {
			t.Errorf("%d layers", c.text.numHiddenLayers)
		}
	})
}
