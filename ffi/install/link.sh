#!/usr/bin/env bash
# Links libsparserl.so anew of libsparserl.a, by CC (cc), with versions of its symbols: rustc has a version
# script of its own, beside which linkers take no other. ffi/install/link.sh ARCHIVE LIBRARY
set -euo pipefail

if [[ $# -ne 2 ]]; then
    echo "usage: $0 ARCHIVE LIBRARY" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# All versions of a workspace's crates are one.
major=$(sed -n 's/^version = "\([0-9]*\)\..*"$/\1/p' "$here/../../Cargo.toml" | head -1)
functions=$(sed -n 's/^    \(sparserl_[a-z_]*\);$/-Wl,-u,\1/p' "$here/sparserl.map")
# Functions that nothing needs from outside are left out of an archive, unless they are asked for. Threads of the
# library outlive dlclose(), and need its code.
# shellcheck disable=SC2086
"${CC:-cc}" -shared -o "$2" -Wl,-soname,"libsparserl.so.$major" -Wl,--version-script="$here/sparserl.map" \
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack,-z,nodelete $functions "$1" -lgcc_s -lutil -lrt -lpthread -lm -ldl
chmod 755 "$2"
