#!/usr/bin/env bash
# Runs every fuzz target for an hour, or for so many seconds, the tests in C under sanitizers that see into the
# library, calls in any order for as long under each, and 50,000 or so many random programs on random matrices, of each
# kind that the tests know, on the emulator: fuzz/nightly.sh [SECONDS [CASES]]
#
# What is found is kept in fuzz/artifacts, and what was learned in fuzz/corpus, from which the next
# night goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-3600}
cases=${2:-50000}
failed=()
# Where there is no rustup, or no nightly, the script says so.
rustup component add rust-src --toolchain nightly 2>/dev/null || true
SPARSERL_FUZZ_SECONDS=$seconds ffi/tests/sanitize.sh || failed+=(ffi/tests/sanitize.sh)
PROPTEST_CASES=$cases cargo test --release -p sparserl-tests --test emulator_properties ||
  failed+=("PROPTEST_CASES=$cases tests/tests/emulator_properties.rs")
for target in $(cargo fuzz list); do
  fuzz/smoke.sh "$seconds" "$target" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "found something: ${failed[*]}; see above and fuzz/artifacts" >&2
  exit 1
fi
