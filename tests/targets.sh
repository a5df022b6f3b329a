#!/usr/bin/env bash
# Whether the programs type-check for every system that they are meant for, or for the targets given. Nothing
# is linked, so no C compiler for them is needed: where a crate calls one, a program that does nothing stands
# for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=("$@")
if ((${#targets[@]} == 0)); then
    targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-apple-darwin aarch64-apple-darwin
        x86_64-pc-windows-gnu x86_64-pc-windows-msvc)
fi
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
# Makes the library that it is asked for, empty.
cat >"$temporary/ar" <<'AR'
#!/bin/sh
for word; do
    case $word in
    *.a | *.lib) : >"${word#-out:}" ;;
    esac
done
AR
chmod +x "$temporary/ar"

rustup target add "${targets[@]}"
# All at once, so that both what they share is built once and no core waits for another.
check=(cargo check --locked --quiet --package sparserl-cli)
for target in "${targets[@]}"; do
    name=${target//-/_}
    export "CC_$name=true" "CXX_$name=true" "AR_$name=$temporary/ar"
    check+=(--target "$target")
done
"${check[@]}"
