package ggml

// #include "ggml-cpu.h"
import "C"

import (
	"runtime"
	"strings"
)

// Features lists the SIMD extensions that the CPU kernels were compiled with.
func Features() []string {
	var fs []string
	for _, f := range []struct {
		name string
		has  C.int
	}{
		{"avx", C.ggml_cpu_has_avx()},
		{"avx2", C.ggml_cpu_has_avx2()},
		{"fma", C.ggml_cpu_has_fma()},
		{"f16c", C.ggml_cpu_has_f16c()},
		{"avx512", C.ggml_cpu_has_avx512()},
		{"avx512_vnni", C.ggml_cpu_has_avx512_vnni()},
		{"avx512_bf16", C.ggml_cpu_has_avx512_bf16()},
		{"neon", C.ggml_cpu_has_neon()},
		{"dotprod", C.ggml_cpu_has_dotprod()},
		{"matmul_int8", C.ggml_cpu_has_matmul_int8()},
	} {
		if f.has != 0 {
			fs = append(fs, f.name)
		}
	}
	return fs
}

// Warning is empty when the CPU kernels were compiled with SIMD, else a line
// for the user: cgo's default flags give scalar kernels that are 4 to 80 times
// slower, which is easy to get by plain go build or go install.
func Warning() string {
	fs := " " + strings.Join(Features(), " ") + " "
	switch {
	case runtime.GOARCH == "amd64" && !strings.Contains(fs, " avx2 "):
		return "built without AVX2: the CPU kernels are several times slower; build with make, or set CGO_CFLAGS and CGO_CXXFLAGS to \"-O3 -march=native\""
	case runtime.GOARCH == "arm64" && !strings.Contains(fs, " neon "):
		return "built without NEON: the CPU kernels are several times slower; build with make"
	}
	return ""
}
