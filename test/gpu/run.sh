#!/bin/bash
# Builds the CUDA module on a machine without Go and network, tests the ops and
# the models on its GPUs, and measures. make gpu-kit puts this script into a
# folder with what it needs:
#
#   ggml.tar.xz   the sources of the pinned ggml, CMakeLists.txt and ggml/cmake
#   bin.tar.xz    inkling-run, convert-inkling and the test programs
#
# Usage: run.sh STAGE...     stages: build ops models engine ids bench
#   TREE        a checkout of the project with testdata (default: two folders up)
#   WORK        scratch (default: a folder of the user in /tmp); kept, so that stages can follow one another
#   OUT         logs (default: WORK/out)
#   CUDA_ARCH   default 90: H100 and H200
#   INKLING_TEST_DEVICE   default cuda:0
#
# A module that lies beside the script (libggml-cuda.so, libggml-base.so.0) is
# used as it is. The exit status is the number of stages that failed.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
TREE=${TREE:-$(cd "$HERE/../.." && pwd)}
WORK=${WORK:-/tmp/inkling-gpu-$(id -u)}
OUT=${OUT:-$WORK/out}
export INKLING_TEST_DEVICE=${INKLING_TEST_DEVICE:-cuda:0}
export INKLING_BACKENDS=$WORK/lib
mkdir -p "$WORK/lib" "$OUT"
failed=0
say() { echo "[$SECONDS s] $*"; }

unpack() { # FILE FOLDER; a machine may have no xz
  [ -e "$WORK/$2" ] && return
  tar xJf "$HERE/$1" -C "$WORK" 2>/dev/null || python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$HERE/$1" "$WORK"
}

stage_build() {
  if [ -f "$HERE/libggml-cuda.so" ]; then
    cp -P "$HERE"/libggml-*.so* "$WORK/lib/"
    return
  fi
  unpack ggml.tar.xz source
  local nvcc
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  "$nvcc" --version | tail -2 | head -1
  cmake -S "$WORK/source" -B "$WORK/build" -DGGML_DIR="$WORK/source/tree" -DINKLING_BUILD=cuda -DINKLING_OUT="$WORK/lib" \
    -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCH:-90}-real" > "$OUT/cmake.log" 2>&1 || { tail -30 "$OUT/cmake.log"; return 1; }
  cmake --build "$WORK/build" --parallel "$(nproc)" > "$OUT/build.log" 2>&1 || { grep -n "error" "$OUT/build.log" | head -20; return 1; }
  ls -la "$WORK/lib"
}

# go_test NAME FOLDER [ARGUMENT...] runs the test program NAME as go test would in FOLDER.
go_test() {
  local name=$1 dir=$2
  shift 2
  (cd "$TREE/$dir" && "$WORK/bin/$name.test" -test.v -test.timeout "${TEST_TIMEOUT:-8m}" "$@") > "$OUT/$name.log" 2>&1
  local rc=$?
  echo "$name: rc $rc, $(grep -c '^ *--- PASS' "$OUT/$name.log") passed, $(grep -c '^ *--- FAIL' "$OUT/$name.log") failed, $(grep -c '^ *--- SKIP' "$OUT/$name.log") skipped"
  grep -E '^ *--- FAIL|^panic|_test.go:[0-9]+: ' "$OUT/$name.log" | grep -v 'no kernel for \[FLASH' | head -"${LINES_SHOWN:-60}"
  return $rc
}

stage_ops() { go_test op binding/op -test.run "${OPS_RUN:-/CUDA}"; }
stage_models() {
  local rc=0
  go_test inkling models/inkling -test.run "${INKLING_RUN:-Golden|Greedy|CacheTypes|Tower}" || rc=1
  go_test kimik25 models/kimik25 -test.run "${KIMI_RUN:-Golden|Greedy|Variants|Prompts|Vision}" || rc=1
  return $rc
}
stage_engine() { go_test engine internal/engine -test.run "${ENGINE_RUN:-Dev|Eval|Kimi}"; }

# ids: one GPU, two GPUs and experts in RAM give the same tokens as the CPU.
stage_ids() { WORK=$WORK OUT=$OUT TREE=$TREE bash "$HERE/ids.sh"; }

unpack bin.tar.xz bin
for stage in "$@"; do
  say "$stage"
  if ! "stage_$stage"; then
    say "$stage failed"
    failed=$((failed + 1))
  fi
done
say "done, $failed stages failed"
exit "$failed"
