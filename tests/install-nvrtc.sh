#!/usr/bin/env bash
# Puts NVRTC 12.9 and 13.0 into .nvrtc/12 and .nvrtc/13 at the workspace root, from NVIDIA's wheels.
# Two versions, because 12.9 is the last that compiles for sm_70. Needs python3 with pip; no CUDA, no GPU.
# Does nothing when they are there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/install-wheel.sh
source "$root/tests/install-wheel.sh"

# The .alt. variants are left out: the same compiler, built with another allocator.
install_wheel "$root/.nvrtc/12" nvidia-cuda-nvrtc-cu12 12.9.86 'libnvrtc.so.*' 'libnvrtc-builtins.so.*'
install_wheel "$root/.nvrtc/13" nvidia-cuda-nvrtc 13.0.88 'libnvrtc.so.*' 'libnvrtc-builtins.so.*'
