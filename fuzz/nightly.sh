#!/usr/bin/env bash
# Runs every fuzz target for an hour, or for so many seconds, the tests in C under sanitizers that see into the
# library, calls in any order for as long under each, and 50,000 or so many random programs on random matrices, of each
# kind that the tests know, on the emulator: fuzz/nightly.sh [SECONDS [CASES [RESULTS]]]
#
# What is found is kept in fuzz/artifacts, and what was learned in fuzz/corpus, from which the next
# night goes on. What was done is appended to RESULTS ($SPARSERL_FUZZ_RESULTS, or fuzz/results.tsv), a line for each
# target; fuzz/tally.sh adds the nights up.
set -euo pipefail
results=${3:-${SPARSERL_FUZZ_RESULTS:-}}
if [ -n "$results" ]; then results=$(realpath -m "$results"); fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
results=${results:-$PWD/fuzz/results.tsv}

seconds=${1:-3600}
cases=${2:-50000}
failed=()
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
if [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]; then commit=$commit+; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Appends a line: target, executions, new entries of the corpus, findings, cases of random programs.
note() {
  if [ ! -s "$results" ]; then
    printf 'date\tcommit\ttarget\texecutions\tnew entries\tfindings\tcases\n' >>"$results"
  fi
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%F)" "$commit" "$@" >>"$results"
}

# The files below a folder.
count() { { find "$1" -type f 2>/dev/null || true; } | wc -l; }

# Runs a command, whose words are in the log; whether it failed is its finding, and 0 or 1.
run() {
  found=0
  "$@" 2>&1 | tee "$log" || found=1
}

# Where the results cannot be written, the night would be for nothing.
touch "$results"

# Where there is no rustup, or no nightly, the script says so.
rustup component add rust-src --toolchain nightly 2>/dev/null || true
run env SPARSERL_FUZZ_SECONDS="$seconds" ffi/tests/sanitize.sh
if [ $found -gt 0 ]; then failed+=(ffi/tests/sanitize.sh); fi
# libFuzzer says this after each of its runs.
executions=$(awk '/stat::number_of_executed_units:/ { sum += $2 } END { printf "%.0f", sum }' "$log")
note sanitize "$executions" 0 $found 0

run env PROPTEST_CASES="$cases" cargo test --release -p sparserl-tests --test emulator_properties
if [ $found -gt 0 ]; then failed+=("PROPTEST_CASES=$cases tests/tests/emulator_properties.rs"); fi
# As many of each kind.
kinds=$(awk '/^test .* \.\.\. (ok|FAILED)/ { n++ } END { print n + 0 }' "$log")
note emulator_properties 0 0 $found $((cases * kinds))

for target in $(cargo fuzz list); do
  entries=$(count "fuzz/corpus/$target")
  artifacts=$(count "fuzz/artifacts/$target")
  run fuzz/smoke.sh "$seconds" "$target"
  if [ $found -gt 0 ]; then failed+=("$target"); fi
  executions=$(awk '/stat::number_of_executed_units:/ { sum += $NF } END { printf "%.0f", sum }' "$log")
  new=$(($(count "fuzz/corpus/$target") - entries))
  artifacts=$(($(count "fuzz/artifacts/$target") - artifacts))
  # Of what was found some leaves no file, as a target that does not build.
  if [ $artifacts -gt $found ]; then found=$artifacts; fi
  note "$target" "$executions" $((new > 0 ? new : 0)) $found 0
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "found something: ${failed[*]}; see above and fuzz/artifacts" >&2
  exit 1
fi
