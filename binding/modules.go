package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"
)

// modules are the GPU backends that can be loaded, in the order in which they
// are preferred: two of them may know the same hardware.
var modules = []struct{ family, file string }{
	{"CUDA", "libggml-cuda.so"},
	{"ROCm", "libggml-hip.so"},
	{"Vulkan", "libggml-vulkan.so"},
}

// BackendsVariable names folders with GPU modules, and then no others are searched.
const BackendsVariable = "INKLING_BACKENDS"

// A MissingError says why there is no device of a family that was asked for.
type MissingError struct {
	Family  string   // such as CUDA
	Reasons []string // of each file that was found and could not be used
	Folders []string // that were searched
}

func (e *MissingError) Error() string {
	if len(e.Reasons) > 0 {
		return fmt.Sprintf("no %s device: %s", e.Family, strings.Join(e.Reasons, "; "))
	}
	return fmt.Sprintf("no %s device: its module is in none of %s (make cuda, make hip or make vulkan builds one; %s names other folders)",
		e.Family, strings.Join(e.Folders, ", "), BackendsVariable)
}

// moduleLock guards ggml's registry, to which a module may be added once.
var moduleLock sync.Mutex

// LoadModules loads the GPU backends that lie in the folders named by
// INKLING_BACKENDS, or else beside the program, in lib, ../lib or ../build/lib there.
// Devices has them afterwards. A module that is missing or finds no hardware is
// no error here; what stands in the way of a device is what the result says, by family.
func LoadModules() map[string]*MissingError {
	moduleLock.Lock()
	defer moduleLock.Unlock()
	// cuBLAS would round F32 products to 11 bits, and the router would choose
	// other experts. It reads this once, when it is loaded.
	for name, value := range map[string]string{"NVIDIA_TF32_OVERRIDE": "0", registerVariable: "1"} {
		if _, ok := os.LookupEnv(name); !ok {
			os.Setenv(name, value)
		}
	}
	folders := moduleFolders()
	missing := map[string]*MissingError{}
	for _, m := range modules {
		if hasDevices(m.family) {
			continue
		}
		missing[m.family] = &MissingError{Family: m.family, Folders: folders}
		for _, dir := range folders {
			path := filepath.Join(dir, m.file)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			reason := loadModule(path)
			if hasDevices(m.family) {
				delete(missing, m.family)
				break
			}
			if reason == "" {
				reason = "it finds no hardware"
			}
			missing[m.family].Reasons = append(missing[m.family].Reasons, fmt.Sprintf("%s: %s", path, reason))
		}
	}
	return missing
}

// moduleFolders are the folders that are searched.
func moduleFolders() []string {
	if list, ok := os.LookupEnv(BackendsVariable); ok {
		return filepath.SplitList(list)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	dir := filepath.Dir(exe)
	return []string{dir, filepath.Join(dir, "lib"), filepath.Join(dir, "..", "lib"), filepath.Join(dir, "..", "build", "lib")}
}

// loadModule returns the reason why a module is of no use, if it says one.
func loadModule(path string) string {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	const size = 512
	reason := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(reason))
	C.inkling_module_load(name, reason, size)
	return strings.TrimSpace(C.GoString(reason))
}

// hasDevices reports whether a backend of the family is registered.
func hasDevices(family string) bool {
	for _, d := range Devices() {
		if d.Family() == family {
			return true
		}
	}
	return false
}
