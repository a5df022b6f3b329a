#!/usr/bin/env bash
# Puts the wheels of NumPy and SciPy into .python at the workspace root, for the tests of the Python
# package, which install them without a network. Needs python3 with pip. Does nothing when they are there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=$root/tests/python-packages.txt

# Older ones cannot have the package, and the tests are ignored.
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then exit 0; fi
# Wheels are for one version of Python.
stamp=$(python3 -c 'import sys; print(sys.version_info[:2])'; cat "$packages")
if [[ -f $root/.python/version && $(<"$root/.python/version") == "$stamp" ]]; then exit 0; fi

echo "installing NumPy and SciPy into $root/.python" >&2
rm -rf "$root/.python"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --dest "$root/.python" --requirement "$packages"
echo "$stamp" >"$root/.python/version"
