#!/usr/bin/env bash
# Puts NVRTC 12.9 and 13.0 into .nvrtc/12 and .nvrtc/13 at the workspace root, from NVIDIA's wheels.
# Two versions, because 12.9 is the last that compiles for sm_70. Needs python3 with pip; no CUDA, no GPU.
# Does nothing when they are there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
destination=$root/.nvrtc
temporary=

cleanup() {
    if [[ -n $temporary ]]; then rm -rf "$temporary"; fi
}
trap cleanup EXIT

# install <major> <package> <version>
install() {
    local folder=$destination/$1 package=$2 version=$3
    if [[ -f $folder/version && $(<"$folder/version") == "$version" ]]; then return; fi

    mkdir -p "$destination"
    # Beside the destination, so that the rename at the end is atomic.
    temporary=$(mktemp -d "$destination/.new-XXXXXX")
    echo "installing $package $version into $folder" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --dest "$temporary/wheel" "$package==$version"
    python3 -m zipfile -e "$temporary"/wheel/*.whl "$temporary/unpacked"

    local new=$temporary/new
    mkdir "$new"
    # The .alt. variants are left out: the same compiler, built with another allocator.
    find "$temporary/unpacked" -type f \
        \( -name 'libnvrtc.so.*' -o -name 'libnvrtc-builtins.so.*' -o -name 'License.txt' \) \
        -exec mv -t "$new" {} +
    if ! compgen -G "$new/libnvrtc.so.*" >/dev/null || ! compgen -G "$new/libnvrtc-builtins.so.*" >/dev/null; then
        echo "error: the wheel of $package $version holds no libnvrtc" >&2
        exit 1
    fi
    echo "$version" >"$new/version"
    chmod 755 "$new"

    rm -rf "$folder"
    # -T: when another run was faster, fail instead of moving into its folder; its result is as good.
    mv -T "$new" "$folder" 2>/dev/null || [[ -f $folder/version ]]
    rm -rf "$temporary"
    temporary=
}

install 12 nvidia-cuda-nvrtc-cu12 12.9.86
install 13 nvidia-cuda-nvrtc 13.0.88
