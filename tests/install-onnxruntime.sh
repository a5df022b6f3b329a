#!/usr/bin/env bash
# Puts ONNX Runtime into .onnxruntime/1 at the workspace root, from PyPI's wheel, for the tests that compare
# it with the engine that is compiled in. Does nothing when it is there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/install-wheel.sh
source "$root/tests/install-wheel.sh"

install_wheel "$root/.onnxruntime/1" onnxruntime 1.31.1 'libonnxruntime.so.*'
ln -sfn libonnxruntime.so.1.31.1 "$root/.onnxruntime/1/libonnxruntime.so"
