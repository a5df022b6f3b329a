#!/usr/bin/env bash
# Whether the programs type-check for every system that they are meant for (or for the targets given). Nothing
# is linked, so no C compiler for them is needed: where a crate calls one, `true` stands for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=("$@")
if ((${#targets[@]} == 0)); then
    targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-apple-darwin aarch64-apple-darwin
        x86_64-pc-windows-msvc x86_64-pc-windows-gnu)
fi
rustup target add "${targets[@]}"
for target in "${targets[@]}"; do
    name=${target//-/_}
    echo "checking $target" >&2
    env "CC_$name=true" "CXX_$name=true" "AR_$name=true" \
        cargo check --locked --quiet --package sparserl-cli --target "$target"
done
