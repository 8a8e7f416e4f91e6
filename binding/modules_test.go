package binding_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestFindDevices: what is asked for and not there is said by name. A module that
// can not be opened is an error of those only who ask for its devices.
func TestFindDevices(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(binding.BackendsVariable, dir)
	broken := filepath.Join(dir, "libggml-cuda.so")
	if err := os.WriteFile(broken, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"", "auto", "cpu", "CPU"} {
		devs, err := binding.FindDevices(spec)
		if err != nil || len(devs) != 1 || !devs[0].IsCPU() {
			t.Errorf("%q: %v, %v; want the CPU", spec, devs, err)
		}
	}
	for _, tc := range []struct{ spec, want string }{
		{"cuda", broken},
		{"cuda:0", broken},
		{"CUDA:1,0", broken},
		{"vulkan", "none of " + dir},
		{"rocm:0", "make hip"},
		{"tpu", "no tpu devices (CPU: "},
		{"cpu,cuda", "want auto, cpu, or GPUs"},
		{"0", "want auto, cpu, or GPUs"},
	} {
		_, err := binding.FindDevices(tc.spec)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q in it", tc.spec, err, tc.want)
		}
	}
	var missing *binding.MissingError
	if _, err := binding.FindDevices("cuda:0"); !errors.As(err, &missing) || missing.Family != "CUDA" || len(missing.Reasons) != 1 {
		t.Errorf("%#v", missing)
	}
	if got := os.Getenv("NVIDIA_TF32_OVERRIDE"); got != "0" {
		t.Errorf("NVIDIA_TF32_OVERRIDE is %q, want 0 before a module is loaded", got)
	}
}
