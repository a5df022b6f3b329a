#!/usr/bin/env bash
# All checks that need no GPU: formatting, lints, docs, and every test. Installs NVRTC into
# .nvrtc, ONNX Runtime into .onnxruntime, CUDA's runtime into .cudart, NumPy and SciPy into .python first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests/install-nvrtc.sh
tests/install-onnxruntime.sh
tests/install-cudart.sh
tests/install-python.sh
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
cargo test --workspace --locked
