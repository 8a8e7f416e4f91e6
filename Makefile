# make alone builds both tools for this CPU; make help lists the rest.
#
# The default targets need go, gcc, g++, git, make and coreutils, nothing more:
# recipes keep to plain sh and do without grep, sed and awk.

SHELL := /bin/sh
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:

# A container may set no HOME; go then has no place for its caches.
ifeq ($(strip $(HOME)),)
export HOME := $(CURDIR)/build/.home
export GOFLAGS += -modcacherw
endif

GGML_MODULE := github.com/ollama/ollama
STATICCHECK_VERSION := v0.8.2
GOFUMPT_VERSION := v0.12.0
GOLANGCI_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0

# --- compiler flags --------------------------------------------------------
# cgo's own default is -O2 without SIMD, which makes ggml 4 to 80 times slower.
# Every target uses the same flags, because go compiles ggml once per set.
# No -Wstringop-overflow: gcc gives a false one in ggml's repack.cpp.

GOARCH := $(shell go env GOARCH)
ifeq ($(PORTABLE),1)
  SIMD := $(if $(filter amd64,$(GOARCH)),-march=x86-64-v3)
else
  SIMD := $(if $(filter arm64,$(GOARCH)),-mcpu=native,-march=native)
endif
export CGO_ENABLED := 1
export CGO_CFLAGS := $(strip -O3 $(SIMD))
export CGO_CXXFLAGS := $(strip -O3 $(SIMD) -Wno-stringop-overflow)

# Where PATH has gcc but not binutils, gcc finds as and ld beside itself this way.
ifeq ($(shell command -v as 2>/dev/null),)
export COMPILER_PATH := $(dir $(realpath $(shell command -v gcc 2>/dev/null)))
endif

# --- which ggml ------------------------------------------------------------
# Default: the pinned module, compiled by cgo. GGML_DIR=/path/to/llama.cpp/ggml:
# that tree, built by CMake as shared libraries (see ggml/README.md).

ifneq ($(GGML_DIR),)
  override GGML_DIR := $(abspath $(GGML_DIR))
  GGML_READY := build/ggml/lib
  export GOFLAGS += -tags=ggml_dir
  # go's build cache does not see headers change behind -I; a changed flag it sees.
  HEADERS_SUM := $(firstword $(shell cat $(GGML_DIR)/include/*.h 2>/dev/null | cksum))
  CGO_CFLAGS += -DGGML_HEADERS_SUM=$(HEADERS_SUM)
endif

# --- targets ---------------------------------------------------------------

.PHONY: help
help: ## list the targets
	@echo "make [TARGET] [PORTABLE=1] [GGML_DIR=/path/to/ggml]"
	@while IFS= read -r line; do \
	  case "$$line" in \
	    [a-z]*:*"## "*) printf '  %-10s %s\n' "$${line%%:*}" "$${line#*## }" ;; \
	  esac; \
	done < Makefile

BIN := bin
LDFLAGS :=
.PHONY: build
build: headers ## the two tools, bin/convert-inkling and bin/inkling-run (default target)
	go build -ldflags="$(LDFLAGS)" -o $(BIN)/ ./cmd/convert-inkling ./cmd/inkling-run

DEMO := build/demo
.PHONY: demo
demo: build ## convert the checkpoint in testdata, draw a picture, ask about it
	bin/convert-inkling testdata/inkling-tiny -o $(DEMO) --outtype bf16 --force
	go run ./examples/draw $(DEMO)/picture.png
	bin/inkling-run run $(DEMO)/inkling-tiny-BF16.gguf "Describe the picture." --image $(DEMO)/picture.png --verbose

KIMI_DEMO := build/demo-kimi
.PHONY: demo-kimi
demo-kimi: build ## the same with a Kimi checkpoint and a short clip
	bin/convert-inkling testdata/kimi-tiny -o $(KIMI_DEMO) --outtype bf16 --force
	go run ./examples/draw $(KIMI_DEMO)/clip.gif
	bin/inkling-run run $(KIMI_DEMO)/kimi-tiny-BF16.gguf "What happens in the clip?" --video $(KIMI_DEMO)/clip.gif --temp 0 --verbose </dev/null

.PHONY: test
test: headers ## all tests that need no GPU: units, goldens, seeds of the fuzz targets, commands
	go test -timeout 30m ./...

.PHONY: test-ops
test-ops: headers ## every ggml op and composition against its Go reference, on each device present
	go test -count=1 -timeout 30m ./binding/...

.PHONY: test-huge
test-huge: headers ## the converter's memory on a checkpoint of 8 GB (writes 15 GB to the folder for temporary files)
	go test -count=1 -timeout 30m -run '^TestMemory' -v ./convert -args -huge

# A module of its own, which downloads the programs it tests with.
.PHONY: test-compat
test-compat: headers ## other programs: gguf-parser-go reads every file; clients of OpenAI, Ollama and Anthropic talk to serve (needs the network the first time)
	cd test/compat/gguf && go test -count=1 -timeout 30m ./...
	cd test/compat/clients && go test -count=1 -timeout 30m -v ./...

.PHONY: test-module
test-module: headers ## the last commit from a module proxy: required by a program of another module, and by go install (2 minutes)
	cd test/module && go test -count=1 -timeout 30m -v ./...

.PHONY: test-browser
test-browser: demo ## the web page in Chromium (CHROME=/usr/bin/chromium), with Node.js and npm
	cd test/browser && npm ci --silent && npm test

# Clients of a server that is a process of its own: see test/load.
STREAMS := 64
PARALLEL := 8
DURATION := 120s
.PHONY: bench-server
bench-server: build ## answers under load are right, memory is flat, times are printed (STREAMS=64 PARALLEL=8 DURATION=120s)
	go run ./test/load bench -streams $(STREAMS) -parallel $(PARALLEL) -duration $(DURATION)

SOAK := 20m
.PHONY: soak
soak: build ## good and bad clients of all APIs, and what they leave behind (SOAK=20m)
	go run ./test/load soak -streams 24 -parallel $(PARALLEL) -duration $(SOAK)

FAULTS := Fault|^TestKilled|^TestProcessesAtOnce|^TestSlow|^TestFullDisk|^TestRoomForModel|^TestOddFiles
.PHONY: test-faults
test-faults: build ## what clients, files, disks and devices do to a server
	go test -count=1 -timeout 30m -run '$(FAULTS)' ./internal/server ./internal/store ./internal/engine ./convert ./cmd/convert-inkling ./cmd/inkling-run
	go run ./test/load faults

# -p 1: the lines come in the order of the packages.
PARITY := $(CURDIR)/build/parity.jsonl
.PHONY: parity
parity: headers ## docs/parity.md and its plot from what the tests measure, on each device present
	rm -f $(PARITY)
	INKLING_PARITY=$(PARITY) go test -count=1 -p 1 -timeout 30m ./binding/op ./models/... ./internal/media
	go run ./internal/parity/report -commit $$(git rev-parse --short HEAD) -date $$(date -u +%Y-%m-%d) -o docs/parity.md $(PARITY)

.PHONY: lint
lint: headers tools ## gofumpt, go vet, staticcheck and the import rules: what CI asks for
	@unformatted=$$($(GOFUMPT) -l $$(go list -f '{{.Dir}}/*.go' ./...)) && \
	  if [ -n "$$unformatted" ]; then echo "not gofumpt-ed:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...
	go test -count=1 -run '^TestLayers' .

.PHONY: lint-full
lint-full: lint $(GOLANGCI) ## lint, vet for macOS without cgo, and golangci-lint: minutes the first time
	cd binding && go run nocgo_gen.go && git diff --exit-code nocgo.go
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	$(GOLANGCI) run ./...

.PHONY: bench-cpu
bench-cpu: build ## steps of a made-up model against their floors: products alone, bytes at the memory's speed (THREADS=1)
	for type in q4_k_m q8_0; do \
	  bin/inkling-run bench --synth inkling-mid --type $$type --device cpu $(if $(THREADS),-t $(THREADS)) -p 512 -n 1 -d 0 -r 2 --floors && \
	  bin/inkling-run bench --synth inkling-mid --type $$type --device cpu $(if $(THREADS),-t $(THREADS)) -p 0 -n 1 -d 8192 -r 2 --floors || exit 1; \
	done
	go test -run '^$$' -bench '^BenchmarkBias$$' -benchtime 8x ./internal/bench
	go test -run '^$$' -bench '^BenchmarkOverhead$$' -benchtime 8x ./internal/engine
	go test -run '^$$' -bench '^BenchmarkSample$$' -benchmem ./internal/engine
	go test -run '^$$' -bench '^BenchmarkDecode$$' -benchmem ./models/inkling
	go test -run '^$$' -bench '^BenchmarkStart$$' -benchtime 8x ./cmd/inkling-run

.PHONY: bench
bench: headers ## all Go benchmarks, five runs each: feed the output to benchstat
	go test -run '^$$' -bench . -benchmem -count 5 -timeout 60m ./...

FUZZTIME := 30s
FUZZ_PACKAGES := ./...
FUZZ_WITHIN := 1000000
.PHONY: fuzz
fuzz: headers ## every fuzz target in the tree in turn, FUZZTIME=30s each; of FUZZ_PACKAGES=./..., none begun after FUZZ_WITHIN seconds
	@began=$$(date +%s); for pkg in $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(FUZZ_PACKAGES)); do \
	  names=$$(go test -list '^Fuzz' $$pkg) || exit 1; \
	  for name in $$names; do \
	    case $$name in Fuzz*) ;; *) continue ;; esac; \
	    [ $$(($$(date +%s) - began)) -lt $(FUZZ_WITHIN) ] || exit 0; \
	    echo "$$pkg $$name"; \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

# CUDA_ARCH as nvcc counts: 80 A100, 86 RTX 30, 89 RTX 40, 90 H100/H200, 120 RTX 50; native: the GPU in this machine.
# FULL=1: flash attention for all head sizes, not only those of the models here.
CUDA_ARCH := native
gpu_module = cmake -S . -B build/$@ -DGGML_DIR="$(ggml_dir)" -DINKLING_BUILD=$@ -DINKLING_OUT=$(CURDIR)/build/lib -DFULL=$(if $(filter 1,$(FULL)),ON,OFF)
.PHONY: cuda
cuda: ## the CUDA backend as a loadable module, build/lib/libggml-cuda.so (CUDA_ARCH=90, JOBS=8, FULL=1)
	@command -v cmake >/dev/null || { echo "make cuda: cmake not found (3.18 or later, 3.24 for CUDA_ARCH=native)"; exit 1; }
	@command -v nvcc >/dev/null || { echo "make cuda: nvcc not found: install the CUDA toolkit and put its bin folder on PATH"; exit 1; }
	$(gpu_module) -DCMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCH)
	cmake --build build/cuda --parallel $(JOBS)

.PHONY: hip
hip: ## the same for AMD's ROCm, build/lib/libggml-hip.so (HIP_ARCH=gfx1100); not tried on hardware
	@command -v cmake >/dev/null || { echo "make hip: cmake not found (3.21 or later)"; exit 1; }
	@test -n "$(HIP_ARCH)" || { echo "make hip: which GPU? such as HIP_ARCH=gfx1100"; exit 1; }
	$(gpu_module) -DCMAKE_HIP_ARCHITECTURES=$(HIP_ARCH)
	cmake --build build/hip --parallel $(JOBS)

.PHONY: vulkan
vulkan: ## the same for Vulkan, build/lib/libggml-vulkan.so; not tried on hardware
	@command -v cmake >/dev/null || { echo "make vulkan: cmake not found (3.19 or later)"; exit 1; }
	@command -v glslc >/dev/null || { echo "make vulkan: glslc not found: install the Vulkan headers and glslc"; exit 1; }
	$(gpu_module)
	cmake --build build/vulkan --parallel $(JOBS)

# For a machine that has nvcc and cmake, but neither Go nor network: docs/gpu.md.
GPU_KIT := dist/gpu
gpu_tests := binding binding/op models/inkling models/kimik25 internal/engine
.PHONY: gpu-kit
gpu-kit: headers ## dist/gpu: programs, tests and sources that build, test and measure the CUDA module elsewhere
	rm -rf $(GPU_KIT)
	mkdir -p $(GPU_KIT)/bin $(GPU_KIT)/source/ggml $(GPU_KIT)/source/tree
	$(MAKE) gpu-kit-programs PORTABLE=1 CGO_LDFLAGS="-static-libstdc++ -static-libgcc"
	cp CMakeLists.txt $(GPU_KIT)/source && cp -r ggml/cmake ggml/cuda $(GPU_KIT)/source/ggml
	dir="$(ggml_dir)" && cp -r "$$dir/include" "$$dir/src" "$$dir/cmake" $(GPU_KIT)/source/tree
	chmod -R u+w $(GPU_KIT)/source && cd $(GPU_KIT)/source/tree/src && rm -rf ggml-vulkan ggml-metal ggml-blas ggml-hip
	cp test/gpu/run.sh test/gpu/ids.sh $(GPU_KIT)
	cd $(GPU_KIT) && tar cJf ggml.tar.xz source && tar cJf bin.tar.xz bin && rm -rf source bin
	@du -sh $(GPU_KIT)

.PHONY: gpu-kit-programs
gpu-kit-programs:
	go build -ldflags "-s -w" -o $(GPU_KIT)/bin/ ./cmd/convert-inkling ./cmd/inkling-run
	for p in $(gpu_tests); do go test -c -ldflags "-s -w" -o $(GPU_KIT)/bin/$${p##*/}.test ./$$p || exit 1; done

# Installed as other programs are: make install PREFIX=$$HOME/.local, DESTDIR for packagers.
PREFIX := /usr/local
.PHONY: install
install: build ## the tools, their manual pages, and shell completions, below PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 755 bin/convert-inkling bin/inkling-run $(DESTDIR)$(PREFIX)/bin
	bin/convert-inkling man > $(DESTDIR)$(PREFIX)/share/man/man1/convert-inkling.1
	bin/inkling-run man > $(DESTDIR)$(PREFIX)/share/man/man1/inkling-run.1
	bin/inkling-run completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/inkling-run
	bin/inkling-run completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_inkling-run
	bin/inkling-run completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/inkling-run.fish

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
DIST = dist/inkling-$(VERSION)-$(shell go env GOOS)-$(GOARCH)
.PHONY: dist
dist: headers ## dist/inkling-VERSION-OS-ARCH.tar.gz for other machines, with a list of its parts (SPDX), their licences and a checksum
	rm -rf $(DIST)
	mkdir -p $(DIST)/lib
	$(MAKE) build PORTABLE=1 BIN=$(DIST) CGO_LDFLAGS="-static-libstdc++ -static-libgcc" LDFLAGS="-s -w -X github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo.version=$(VERSION)"
	cp LICENSE README.md CHANGELOG.md deploy/inkling.service $(DIST)
	$(DIST)/convert-inkling man > $(DIST)/convert-inkling.1
	$(DIST)/inkling-run man > $(DIST)/inkling-run.1
	for m in build/lib/libggml-*.so*; do [ ! -e "$$m" ] || cp -P "$$m" $(DIST)/lib/; done
	go run ./internal/sbom $(DIST)/convert-inkling $(DIST)/inkling-run > $(DIST)/sbom.spdx.json
	go run ./internal/sbom -notices $(DIST)/convert-inkling $(DIST)/inkling-run > $(DIST)/NOTICES
	tar -C dist -czf $(DIST).tar.gz $(notdir $(DIST))
	cd dist && sha256sum $(notdir $(DIST)).tar.gz > $(notdir $(DIST)).tar.gz.sha256

.PHONY: clean
clean: ## remove bin, build and dist (go's caches stay)
	rm -rf bin build dist

# --- what the targets above need ---------------------------------------------

# The folder that holds include/ and src/ of the ggml in use.
ggml_dir = $(or $(GGML_DIR),$$(go mod download $(GGML_MODULE) && go list -m -f '{{.Dir}}' $(GGML_MODULE))/ml/backend/ggml/ggml)
JOBS := $(shell nproc)

# Always made anew: vet and staticcheck can succeed from go's cache and so would
# hide a link that is missing or points to the other ggml.
.PHONY: headers
headers: $(GGML_READY)
	@mkdir -p build
	@dir="$(ggml_dir)" && test -f "$$dir/include/ggml.h" || { echo "no include/ggml.h in $$dir"; exit 1; }; \
	  ln -sfn "$$dir/include" build/include

# Phony, so that CMake decides what a changed tree needs.
.PHONY: build/ggml/lib
build/ggml/lib:
	@command -v cmake >/dev/null || { echo "make GGML_DIR=...: cmake not found (3.18 or later)"; exit 1; }
	cmake -S . -B build/ggml -DGGML_DIR="$(GGML_DIR)" -DINKLING_BUILD=cpu -DINKLING_OUT=$(CURDIR)/build/ggml/lib \
	  -DGGML_NATIVE=$(if $(filter 1,$(PORTABLE)),OFF,ON)
	cmake --build build/ggml --parallel $(JOBS)

# Checkers at fixed versions, in a folder of their own per version.
TOOLS := $(CURDIR)/build/tools
STATICCHECK := $(TOOLS)/$(STATICCHECK_VERSION)/staticcheck
GOFUMPT := $(TOOLS)/$(GOFUMPT_VERSION)/gofumpt
GOLANGCI := $(TOOLS)/$(GOLANGCI_VERSION)/golangci-lint
GOVULNCHECK := $(TOOLS)/$(GOVULNCHECK_VERSION)/govulncheck
install_tool = GOBIN=$(@D) go install
.PHONY: tools
tools: $(STATICCHECK) $(GOFUMPT)
$(STATICCHECK):
	$(install_tool) honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
$(GOFUMPT):
	$(install_tool) mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
$(GOVULNCHECK):
	$(install_tool) golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
$(GOLANGCI):
	$(install_tool) github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: vuln
vuln: $(GOVULNCHECK) headers ## known vulnerabilities of the modules that are called (asks vuln.go.dev)
	$(GOVULNCHECK) ./...
