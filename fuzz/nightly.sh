#!/usr/bin/env bash
# Runs every fuzz target for an hour, or for so many seconds: fuzz/nightly.sh [SECONDS]
#
# What is found is kept in fuzz/artifacts, and what was learned in fuzz/corpus, from which the next
# night goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-3600}
failed=()
for target in $(cargo fuzz list); do
  fuzz/smoke.sh "$seconds" "$target" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "found something: ${failed[*]}; see fuzz/artifacts" >&2
  exit 1
fi
