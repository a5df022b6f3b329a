#!/usr/bin/env bash
# Runs every fuzz target, or those named, for so many seconds each: fuzz/smoke.sh [SECONDS [TARGET...]]
#
# Installs nothing. Stops at the first target that finds something; what it found is in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true

if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz/smoke.sh needs cargo-fuzz: cargo install cargo-fuzz --version 0.13.2 --locked" >&2
  exit 1
fi
# Findings name their lines, which releases do not know.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
# Lets a stable compiler take the sanitizer's options.
export RUSTC_BOOTSTRAP=1
# NVRTC's allocations of a process's lifetime are no leaks of ours.
export ASAN_OPTIONS=detect_leaks=0
# Where tests/install-nvrtc.sh puts the compilers.
export SPARSERL_NVRTC=${SPARSERL_NVRTC:-$PWD/.nvrtc}
# Targets write small files over and over, for which a disk is slow.
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(cargo fuzz list); fi
cargo fuzz build
# Each core has one target after the other; what is said begins with the target's name.
smoke() {
  local target=$1 seconds=$2 corpus=fuzz/corpus/$1 dictionary=fuzz/dictionaries/$1.dict
  mkdir -p "$corpus"
  local seeds=("fuzz/seeds/$target")
  local options=(-max_total_time="$seconds" -max_len=16384 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1)
  if [ "$target" = program_text ]; then seeds+=(tests/golden); fi
  if [ -e "$dictionary" ]; then options+=(-dict="$dictionary"); fi
  echo "$target: for $seconds s"
  cargo fuzz run "$target" "$corpus" "${seeds[@]}" -- "${options[@]}" 2>&1 |
    grep --line-buffered -vE '^#[0-9]+\s+(NEW|REDUCE|RELOAD|pulse)|NEW_FUNC|^[[:space:]]*$' |
    sed -u "s/^/$target: /"
  # With this status xargs begins no other.
  [ "${PIPESTATUS[0]}" = 0 ] || exit 255
}
export -f smoke
printf '%s\0' "${targets[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'smoke "$@"' - {} "$seconds"
