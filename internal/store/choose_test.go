package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	usual := []string{
		"README.md", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-BF16.gguf", "m.imatrix.gguf", "imatrix_unsloth.gguf",
		"mmproj-m-F32.gguf", "mmproj-m-F16.gguf", "mmproj-m-BF16.gguf", "mtp-m-BF16.gguf", "mtp-m-Q4_K_M.gguf",
	}
	split := []string{
		"Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", "UD-Q2_K_XL/m-UD-Q2_K_XL.gguf",
		"IQ1_S/m-00001-of-00001.gguf", "mmproj-F16.gguf", "other/mmproj-elsewhere-BF16.gguf",
	}
	for _, tt := range []struct {
		name, tag string
		paths     []string
		want      chosen
	}{
		{"default", "latest", usual, chosen{[]string{"m-Q4_K_M.gguf"}, "mmproj-m-BF16.gguf", "mtp-m-Q4_K_M.gguf"}},
		{"type", "q8_0", usual, chosen{[]string{"m-Q8_0.gguf"}, "mmproj-m-BF16.gguf", "mtp-m-BF16.gguf"}},
		{"file name", "m-BF16.gguf", usual, chosen{[]string{"m-BF16.gguf"}, "mmproj-m-BF16.gguf", "mtp-m-BF16.gguf"}},
		{"split, in a folder", "Q4_K_M", split, chosen{[]string{"Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf"}, "mmproj-F16.gguf", ""}},
		{"without UD-", "q2_k_xl", split, chosen{[]string{"UD-Q2_K_XL/m-UD-Q2_K_XL.gguf"}, "mmproj-F16.gguf", ""}},
		{"type of the folder", "iq1_s", split, chosen{[]string{"IQ1_S/m-00001-of-00001.gguf"}, "mmproj-F16.gguf", ""}},
		{"no preferred type", "", []string{"m-Q3_K_S.gguf", "m-Q2_K.gguf"}, chosen{model: []string{"m-Q2_K.gguf"}}},
		{"eight bits before others", "", []string{"m-Q2_K.gguf", "m-Q8_0.gguf"}, chosen{model: []string{"m-Q8_0.gguf"}}},
		{"dots", "Q5_K_S", []string{"m.Q5_K_S.gguf", "m.Q4_K_M.gguf", "m.mmproj-f16.gguf"}, chosen{[]string{"m.Q5_K_S.gguf"}, "m.mmproj-f16.gguf", ""}},
		{"exact projector", "", []string{"m-Q4_K_M.gguf", "mmproj-m-Q4_K_M.gguf", "mmproj-m-BF16.gguf"}, chosen{[]string{"m-Q4_K_M.gguf"}, "mmproj-m-Q4_K_M.gguf", ""}},
		{"projector of another model", "", []string{"m-Q4_K_M.gguf", "mmproj-x-BF16.gguf"}, chosen{model: []string{"m-Q4_K_M.gguf"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose("src", tt.tag, tt.paths)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(chosen{})); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseErrors(t *testing.T) {
	_, err := choose("hf.co/o/m", "Q6_K", []string{"m-Q8_0.gguf", "m-Q4_K_M.gguf", "mmproj-m-F16.gguf"})
	var quant *QuantError
	if !errors.As(err, &quant) {
		t.Fatalf("error %v, want a QuantError", err)
	}
	if diff := cmp.Diff(&QuantError{"hf.co/o/m", "Q6_K", []string{"Q4_K_M", "Q8_0"}}, quant); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"missing part", []string{"m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf"}, "s: m-Q8_0 is split, and part 2 of 3 is missing"},
		{"projector only", []string{"mmproj-F16.gguf"}, "s: no GGUF file of a model"},
		{"impossible part", []string{"m-00004-of-00003.gguf"}, "s: no GGUF file of a model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := choose("s", "", tt.paths); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
