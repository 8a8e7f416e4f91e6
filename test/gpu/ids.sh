#!/bin/bash
# The same tokens from every layout: one GPU, two, experts in host memory, some
# layers on the CPU, single tensors elsewhere. Called by run.sh; WORK and TREE are
# its variables. Differences from the one-GPU run fail; those from the CPU's run are
# shown, since sums in another order may turn a near tie around.
set -uo pipefail
run=$WORK/bin/inkling-run
failed=0

ids() { # MODEL OPTION... : the generated tokens
  "$run" run "$model" "$prompt" --temp 0 -n 48 --mmproj off --json "$@" > "$WORK/answer.json" 2> "$WORK/answer.err" || { cat "$WORK/answer.err" >&2; return 1; }
  grep -o '"token_ids":\[[^]]*\]' "$WORK/answer.json" | head -1
}

gpus=$(nvidia-smi -L | wc -l)
layouts=("--device cuda:0" "--device cuda:0 --cpu-moe" "--device cuda:0 --n-cpu-moe 2" "--device cuda:0 -ngl 3" "--device cuda:0 -ot ffn_down_exps=cpu" "--device cuda:0 --kv bf16" "--device cuda:0 --kv q8_0")
[ "$gpus" -gt 1 ] && layouts+=("--device cuda:0,1 --tensor-split 1,1" "--device cuda:1" "--device cuda:0,1 --tensor-split 1,1 --cpu-moe")
for checkpoint in inkling-tiny kimi-tiny; do
  dir=$WORK/gguf/$checkpoint
  [ -d "$dir" ] || "$WORK/bin/convert-inkling" "$TREE/testdata/$checkpoint" -o "$dir" --outtype "${OUTTYPE:-bf16}" > /dev/null 2>&1 || { echo "$checkpoint: not converted"; exit 1; }
  model=$(find "$dir" -name '*.gguf' ! -name 'mmproj*' ! -name 'mtp*' | head -1)
  for prompt in "Tell me something about the sea." "Count from one to twenty in words." "$(for i in $(seq 120); do echo "word$i"; done | tr '\n' ' ') What was the list about?"; do
    cpu=$(ids --device cpu) || exit 1
    one=""
    for layout in "${layouts[@]}"; do
      case $checkpoint$layout in kimi*q8_0) continue ;; esac # its rows are no whole blocks
      # shellcheck disable=SC2086 # options are words
      got=$(ids $layout) || { failed=1; echo "FAIL $checkpoint [$layout]: no answer"; continue; }
      where=$(grep -o '"devices":\[[^]]*\],"graph_splits":[0-9]*' "$WORK/answer.json")
      [ -z "$one" ] && one=$got
      verdict=same
      case $layout in
        *--kv*) [ "$got" = "$one" ] || verdict="other cache, other tokens" ;;
        *) [ "$got" = "$one" ] || { verdict="DIFFERENT from one GPU"; failed=1; } ;;
      esac
      [ "$got" = "$cpu" ] || verdict="$verdict, not the CPU's"
      echo "$checkpoint [$layout] $where: $verdict"
    done
  done
done
exit $failed
