#!/usr/bin/env bash
# Puts the headers of CUDA's runtime and its static library into .cudart at the workspace root, from
# NVIDIA's wheels: programs that use the C API on a GPU are compiled and linked with them where there
# is no CUDA. Needs python3 with pip; no CUDA, no GPU. Does nothing when they are there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/install-wheel.sh
source "$root/tests/install-wheel.sh"

# What cuda_runtime_api.h includes; other headers of the wheel have the same names in several folders.
install_wheel "$root/.cudart/include" nvidia-cuda-runtime 13.0.88 'cuda*.h' 'driver_types.h' \
    'builtin_types.h' 'device_types.h' 'surface_types.h' 'texture_types.h' 'vector_types.h' \
    'library_types.h' 'host_defines.h'
install_wheel "$root/.cudart/include/crt" nvidia-cuda-crt 13.0.88 '*.h' '*.hpp'
install_wheel "$root/.cudart/lib" nvidia-cuda-runtime 13.0.88 libcudart_static.a
