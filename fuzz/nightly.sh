#!/usr/bin/env bash
# Runs every fuzz target for an hour, or for so many seconds, and the tests in C under sanitizers that see into the
# library, calls in any order for as long under each: fuzz/nightly.sh [SECONDS]
#
# What is found is kept in fuzz/artifacts, and what was learned in fuzz/corpus, from which the next
# night goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-3600}
failed=()
# Where there is no rustup, or no nightly, the script says so.
rustup component add rust-src --toolchain nightly 2>/dev/null || true
SPARSERL_FUZZ_SECONDS=$seconds ffi/tests/sanitize.sh || failed+=(ffi/tests/sanitize.sh)
for target in $(cargo fuzz list); do
  fuzz/smoke.sh "$seconds" "$target" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "found something: ${failed[*]}; see above and fuzz/artifacts" >&2
  exit 1
fi
