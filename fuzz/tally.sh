#!/usr/bin/env bash
# Prints the totals of the nights so far, by what was fuzzed: fuzz/tally.sh [RESULTS]
#
# RESULTS is what fuzz/nightly.sh appends to: $SPARSERL_FUZZ_RESULTS, or fuzz/results.tsv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

results=${1:-${SPARSERL_FUZZ_RESULTS:-fuzz/results.tsv}}
if [ ! -f "$results" ]; then
  echo "$results: no such file; fuzz/nightly.sh writes it" >&2
  exit 1
fi
awk -F '\t' '
  BEGIN { OFS = "\t" }
  FNR == 1 { next }
  NF != 7 || $4 $5 $6 $7 !~ /^[0-9]+$/ {
    printf "%s:%d: no line that fuzz/nightly.sh wrote\n", FILENAME, FNR > "/dev/stderr"
    wrong = 1
    exit 1
  }
  !($3 in runs) { order[++count] = $3 }
  { runs[$3]++; executions[$3] += $4; entries[$3] += $5; findings[$3] += $6; cases[$3] += $7 }
  END {
    if (wrong) exit 1
    print "target", "runs", "executions", "new entries", "findings", "cases"
    for (i = 1; i <= count; i++) {
      t = order[i]
      printf "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\n", t, runs[t], executions[t], entries[t], findings[t], cases[t]
      all[1] += runs[t]; all[2] += executions[t]; all[3] += entries[t]; all[4] += findings[t]; all[5] += cases[t]
    }
    printf "all\t%d\t%.0f\t%.0f\t%.0f\t%.0f\n", all[1], all[2], all[3], all[4], all[5]
  }
' "$results"
