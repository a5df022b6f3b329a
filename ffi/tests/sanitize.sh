#!/usr/bin/env bash
# The tests in C under sanitizers that see into the library, std included: ffi/tests/sanitize.sh [SANITIZER...]
#
# For each of thread and address, or those that are named, the library is compiled anew, and its tests are by gcc and
# by clang (ffi/tests/c_api.rs); address brings UBSan for C. What the library starts to compile and measure are other
# programs, and stay as they are. Installs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

missing() {
  echo "ffi/tests/sanitize.sh needs $1" >&2
  exit 1
}
sysroot=$(rustc +nightly --print sysroot 2>/dev/null) || missing "Rust's nightly: rustup toolchain install nightly"
[ -d "$sysroot/lib/rustlib/src/rust/library" ] ||
  missing "the source of std: rustup component add rust-src --toolchain nightly"
for compiler in gcc clang; do
  command -v "$compiler" >/dev/null || missing "$compiler"
done

if [ $# -gt 0 ]; then sanitizers=("$@"); else sanitizers=(thread address); fi
target=$(rustc +nightly -vV | sed -n 's/^host: //p')
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_INCREMENTAL=0
# Older runtimes of TSan do not know where newer systems put programs at random.
run=()
if setarch -R true 2>/dev/null; then run=(setarch -R); fi
# Where tests/install-nvrtc.sh puts the compilers.
export SPARSERL_NVRTC=${SPARSERL_NVRTC:-$PWD/.nvrtc}

# Run by hand: crates with C in them would be built anew for every CC.
build=(cargo test --workspace --locked --test c_api --no-run)
"${build[@]}"
tests=$("${build[@]}" 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')

for sanitizer in "${sanitizers[@]}"; do
  library=$folder/$sanitizer/$target/release
  mkdir -p "$library"
  link=()
  if [ "$sanitizer" = thread ]; then
    gcc -std=c11 -O1 -fPIC -c ffi/tests/c/tsan.c -o "$library/tsan.o"
    link=("-Clink-arg=$library/tsan.o")
  fi
  # Findings name their lines, which releases do not know. With a target named, what only runs to build is left alone.
  CARGO_TARGET_DIR=$folder/$sanitizer RUSTFLAGS=-Zsanitizer=$sanitizer \
    CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none \
    cargo +nightly rustc --release --locked -Zbuild-std --target "$target" -p sparserl-ffi --lib \
    --crate-type cdylib -- "${link[@]}"
  ln -sf "$folder/debug/sparserl-server" "$library/"
  case $sanitizer in
    address) in_c=address,undefined ;;
    *) in_c=$sanitizer ;;
  esac
  for compiler in gcc clang; do
    echo "$sanitizer, $compiler"
    SPARSERL_LIBRARY=$library SPARSERL_SANITIZER=$in_c CC=$compiler "${run[@]}" "$tests" sanitized::
  done
done
