#!/usr/bin/env bash
# Builds every program that run.sh needs, for a machine with a GPU but without Rust, and packs them into a folder.
#
#     reference/gpu/build.sh target/gpu
#
# The programs open the CUDA libraries themselves when they start. Tests find their data under the path of this checkout, which the folder
# names: run.sh makes a link there.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?the folder to fill}
mkdir -p "$out"
root=$PWD
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

# Without optimisation across crates: half the time to build, and the kernels are none of Rust's business.
profile=(--profile bundle --config 'profile.bundle.inherits="release"' --config 'profile.bundle.lto=false'
    --config 'profile.bundle.codegen-units=16' --config 'profile.bundle.strip=true')

eval "$(cargo xtask cuda-stubs --static)"

# Tests that ask for a GPU, as CRATE/NAME.
tests=()
for file in $(git grep -l "needs an NVIDIA GPU" -- '*/tests/*.rs'); do
    name=${file#*/tests/}
    name=${name%%/*}
    tests+=("${file%%/*}/${name%.rs}")
done
targets=(--example devices --example describe --example generate --example trace --example embed_image --example scan
    --example make_checkpoint --example export --example smoke --example needle)
for bench in gemm gemv scan prefill decode tower; do
    targets+=(--bench "cuda_$bench")
done
for test in "${tests[@]}"; do
    targets+=(--test "${test#*/}")
done

# One build for all, so that dependencies are compiled once. A test goes under its crate's name.
cargo build "${profile[@]}" --features cuda --package fermi-blas --package gdn-scan --package siglip2-tower \
    --package qwen3-hybrid --package vlm-pipeline --package examples --package benches "${targets[@]}" \
    --message-format json | python3 -c '
import json, shutil, sys
from pathlib import Path
out, tests = Path(sys.argv[1]), sys.argv[2:]
for line in sys.stdin:
    message = json.loads(line)
    if message.get("reason") != "compiler-artifact" or not message.get("executable"):
        continue
    crate, target = Path(message["manifest_path"]).parent.name, message["target"]
    name = target["name"]
    if target["kind"] == ["test"]:
        if f"{crate}/{name}" not in tests:
            continue
        name = f"test-{crate}-{name}"
    shutil.copy2(message["executable"], out / name)
' "$bin" "${tests[@]}"

tar --create --xz --file "$out/bin.tar.xz" --directory "$bin" .

printf '%s\n' "$root" >"$out/built-in"
printf '%s\n' "${CARGO_TARGET_DIR:-$root/target}/tmp" >"$out/temporary"
du -sh "$out"
