#!/usr/bin/env bash
# Installs libsparserl: ffi/install/install.sh PREFIX [FOLDER]
#
# Builds it in release mode, unless FOLDER has it already (libsparserl.so, libsparserl.a, and
# sparserl-server there or one above). DESTDIR is put before everything that is written.
#
# The shared library is linked anew of the static one (link.sh).
set -euo pipefail

if [[ $# -lt 1 || $# -gt 2 || $1 != /* ]]; then
    echo "usage: $0 PREFIX [FOLDER], PREFIX being an absolute path" >&2
    exit 2
fi
prefix=${1%/}
crate=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ $# -eq 2 ]]; then
    built=$(cd "$2" && pwd)
else
    cargo build --release --locked --manifest-path "$crate/Cargo.toml" --lib --bins
    built=$(cd "${CARGO_TARGET_DIR:-$crate/../target}/release" && pwd)
fi
server=$built/sparserl-server
if [[ ! -f $server ]]; then server=$built/../sparserl-server; fi

# All versions of a workspace's crates are one.
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$crate/../Cargo.toml" | head -1)
major=${version%%.*}
to=${DESTDIR:-}$prefix
install -d "$to"/{include,lib/pkgconfig,lib/cmake/sparserl,libexec/sparserl,share/sparserl/examples}
install -m 644 "$crate/sparserl.h" "$to/include"
"$crate/install/link.sh" "$built/libsparserl.a" "$to/lib/libsparserl.so.$version"
ln -sfn "libsparserl.so.$version" "$to/lib/libsparserl.so.$major"
ln -sfn "libsparserl.so.$major" "$to/lib/libsparserl.so"
install -m 644 "$built/libsparserl.a" "$to/lib"
install -m 755 "$server" "$to/libexec/sparserl"
install -m 644 "$crate"/examples/* "$to/share/sparserl/examples"

fill() {
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@MAJOR@|$major|g" \
        "$crate/install/$1" >"$to/$2"
}
fill sparserl.pc.in lib/pkgconfig/sparserl.pc
fill sparserl-config.cmake.in lib/cmake/sparserl/sparserl-config.cmake
fill sparserl-config-version.cmake.in lib/cmake/sparserl/sparserl-config-version.cmake
echo "installed sparserl $version in $to"
