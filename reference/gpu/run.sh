#!/usr/bin/env bash
# What is known of the CUDA backend on a real card: checks, exactness, tables, the peers' speed. Needs no Rust and no network.
#
#     reference/gpu/run.sh BUNDLE OUT [STAGE...]
#
# BUNDLE is the folder that build.sh filled; OUT gets one text for each stage. Stages, all of them if none is named: tests, exactness,
# memcheck, racecheck, tables, peers. LD_LIBRARY_PATH must lead to libcublas (libcuda is the driver's). A stage that fails does not stop the
# others; the exit code says whether one did.
set -uo pipefail
bundle=$(realpath "${1:?the folder that build.sh filled}")
mkdir -p "${2:?the folder for the results}"
out=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")/../.." && pwd)
scratch=${SCRATCH:-${TMPDIR:-/tmp}/fermi-vlm}
full=${MODEL:-$scratch/full}
python=${PYTHON:-python3}
bin=$scratch/bin
failures=0
mkdir -p "$scratch"
[[ -e $bin && $bin -nt $bundle/bin.tar.xz ]] || {
    rm -rf "$bin" && mkdir -p "$bin" && "$python" -m tarfile -e "$bundle/bin.tar.xz" "$bin" && touch "$bin"
} || exit 1

# Tests find their data under the path of the checkout that they were built in.
built=$(cat "$bundle/built-in")
if [[ ! -e $built ]]; then
    mkdir -p "$(dirname "$built")" && ln -s "$here" "$built"
fi
if [[ ! -e $built/reference/gpu/run.sh ]]; then
    echo "$built is another folder than this checkout: the tests would not find their data" >&2
    exit 1
fi
mkdir -p "$(cat "$bundle/temporary")"

# Runs a command, says how it ended, and counts failures.
check() {
    printf '\n$ %s\n' "${*/#$bin\//}"
    local start=$SECONDS status=0
    "$@" || status=$?
    printf '(exit code %d, %d s)\n' "$status" $((SECONDS - start))
    ((status == 0)) || failures=$((failures + 1))
}

# The random checkpoint of the published sizes.
full_model() {
    [[ -e $full/model.safetensors ]] || check "$bin/make_checkpoint" --out "$full" --force
}

tests() {
    check "$bin/devices"
    for test in "$bin"/test-*; do
        [[ $test == *full_size ]] || check "$test" --ignored cuda --test-threads 4
    done
    check "$bin/describe" --device cuda
    check "$bin/smoke" --device cuda
    check "$bin/needle" --device cuda
}

# The same passes on the processor and on the card, and the budget of memory, at full size.
exactness() {
    full_model
    check env VLM_FULL_CHECKPOINT="$full" "$bin/test-vlm-pipeline-full_size" --ignored --nocapture --test-threads 1
    local ids picture=$here/examples/assets/tiny/sample_sliced.png
    ids=$(seq -s, 1000 37 20000)
    for device in cpu cuda; do
        check "$bin/generate" --model "$full" --ids "$ids" --max-new-tokens 24 --ignore-eos --json --context-length 2048 \
            --precision f32 --step-logits "$scratch/logits-$device.safetensors" --device "$device"
        check "$bin/generate" --model "$full" --ids "$ids" --max-new-tokens 24 --ignore-eos --json --context-length 2048 \
            --step-logits "$scratch/logits-q8-$device.safetensors" --device "$device"
        check "$bin/embed_image" "$picture" --model "$full" --out "$scratch/picture-$device.safetensors" --device "$device"
    done
    check "$python" "$here/reference/gpu/difference.py" 5e-5 "$scratch"/logits-{cuda,cpu}.safetensors
    check "$python" "$here/reference/gpu/difference.py" 5e-5 "$scratch"/logits-q8-{cuda,cpu}.safetensors
    check "$python" "$here/reference/gpu/difference.py" 1e-5 "$scratch"/picture-{cuda,cpu}.safetensors
}

sanitize() {
    check timeout "${SANITIZER_SECONDS:-240}" compute-sanitizer --error-exitcode 1 --print-limit 20 "$@"
}

memcheck() {
    sanitize --tool memcheck "$bin/describe" --device cuda --max-new-tokens 4
    for test in "$bin"/test-{fermi-blas,gdn-scan}-conformance "$bin"/test-siglip2-tower-windows; do
        sanitize --tool memcheck "$test" --ignored cuda --test-threads 1
    done
}

# The vendor's kernels are left out: what it finds there would say nothing about ours. The tool loses track of launches from two threads.
racecheck() {
    local ours=(--tool racecheck --kernel-name-exclude kns=gemm --kernel-name-exclude kns=cutlass)
    sanitize "${ours[@]}" "$bin/describe" --device cuda --max-new-tokens 2
    for test in "$bin"/test-{fermi-blas,gdn-scan}-conformance "$bin"/test-siglip2-tower-windows; do
        sanitize "${ours[@]}" "$test" --ignored cuda --test-threads 1 --skip two_threads
    done
}

tables() {
    full_model
    for table in gemm scan gemv; do
        check "$bin/cuda_$table"
    done
    for table in prefill decode tower; do
        check "$bin/cuda_$table" "$full"
    done
}

peers() {
    full_model
    check "$python" "$here/reference/gpu/peers.py" --model "$full" --json "$out/peers.json"
}

(($#)) || set -- tests exactness memcheck racecheck tables peers
for stage in "$@"; do
    printf '== %s\n' "$stage"
    {
        printf '%s, %s\n' "$stage" "$(date -u +%F)"
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
        "$stage"
    } >"$out/$stage.txt" 2>&1
    grep -A1 '^\$ ' "$out/$stage.txt" >/dev/null || echo "nothing ran"
    grep -E '^test result|^\(exit code [1-9]|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$stage.txt"
done
printf '%d failures\n' "$failures"
exit $((failures > 0))
