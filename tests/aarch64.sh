#!/usr/bin/env bash
# Builds the program for aarch64 and has it install NVRTC, make a kernel and check it by emulation, on this machine
# by qemu: the folder must be the one that the program for this machine writes, byte for byte. Needs Debian's
# gcc-aarch64-linux-gnu and qemu-user-static, registered with binfmt_misc, for the program starts processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=aarch64-unknown-linux-gnu
rustup target add "$target"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
cargo build --locked --package sparserl-cli --target "$target"
cargo build --locked --package sparserl-cli

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
export XDG_DATA_HOME=$temporary/data QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
python3 -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux2014_aarch64 \
    --dest "$temporary" nvidia-cuda-nvrtc-cu12==12.9.86
# Each has a cache of its own, or it would take the cubins of the other.
there=target/$target/debug/sparserl-cli
"$there" setup --wheel "$temporary"/*.whl
SPARSERL_CACHE_DIR=$temporary/there "$there" gen tests/matrices/beam.mtx --output "$temporary/aarch64"
tests/install-nvrtc.sh
SPARSERL_NVRTC=.nvrtc/12 SPARSERL_CACHE_DIR=$temporary/here target/debug/sparserl-cli \
    gen tests/matrices/beam.mtx --output "$temporary/x86_64"
diff --recursive "$temporary/aarch64" "$temporary/x86_64"
echo "aarch64: the same folder"
