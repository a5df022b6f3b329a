#!/usr/bin/env python3
"""Compares reading a Matrix Market file here and with fast_matrix_market from PyPI.

Generates a `real general` file, then times, in one run and interleaved, from opening the file (it
is in the page cache) to:

- ours: a validated CSR matrix, columns sorted, duplicates summed;
- fmm → COO: `fast_matrix_market.mmread`, a scipy COO matrix;
- fmm → CSR: the same and `.tocsr()`, which also sums duplicates and sorts: the like of ours.

Every sample is a fresh process that reads the file twice and reports the second time, so that
neither side profits from more warm-up than the other. Prints a table of medians, writes all samples
as JSON. The Python packages go into a virtual environment under `target/`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "market_speed"
PACKAGES = ["fast_matrix_market==1.7.6", "scipy", "numpy"]
STEPS = ["fmm → COO", "fmm → CSR"]

GENERATE = """
import sys
import numpy as np
path, entries, order = sys.argv[1], int(sys.argv[2]), sys.argv[3]
size = max(1, entries // 5)
rng = np.random.default_rng(1)
rows, cols = rng.integers(1, size + 1, (2, entries))
values = rng.standard_normal(entries)
if order != "random":
    keys = (rows, cols) if order == "columns" else (cols, rows)
    order = np.lexsort(keys)
    rows, cols, values = rows[order], cols[order], values[order]
with open(path + ".part", "w") as file:
    file.write("%%MatrixMarket matrix coordinate real general\\n")
    file.write(f"{size} {size} {entries}\\n")
    for first in range(0, entries, 1_000_000):
        part = slice(first, first + 1_000_000)
        lines = zip(rows[part].tolist(), cols[part].tolist(), values[part].tolist())
        file.write("".join(f"{i} {j} {v!r}\\n" for i, j, v in lines))
"""

READ = """
import json, sys, time
import fast_matrix_market
import scipy.sparse
for _ in range(2):
    start = time.perf_counter()
    coo = fast_matrix_market.mmread(sys.argv[1], parallelism=int(sys.argv[2]))
    assert coo.format == "coo"
    read = time.perf_counter()
    csr = coo.tocsr()
    converted = time.perf_counter()
    assert csr.has_sorted_indices
    nnz = csr.nnz
    del coo, csr
print(json.dumps({"nnz": nnz, "seconds": [read - start, converted - start]}))
"""


def python() -> str:
    """The interpreter of the virtual environment, which is made on the first run."""
    executable = FOLDER / "venv" / "bin" / "python"
    if not executable.exists():
        venv.create(FOLDER / "venv", with_pip=True)
        subprocess.run([executable, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return str(executable)


def output(*command: str) -> dict:
    """What a command prints, which is one JSON object."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(path: Path, threads: int, repeats: int, binary: str) -> dict[str, list[float]]:
    """Seconds of each reader, one sample of each in turn."""
    samples: dict[str, list[float]] = {name: [] for name in ["ours", *STEPS]}
    for _ in range(repeats):
        ours = output(binary, str(path), str(threads), "2")
        theirs = output(python(), "-c", READ, str(path), str(threads))
        if ours["nnz"] != theirs["nnz"]:
            sys.exit(f"{ours['nnz']} entries here, {theirs['nnz']} there")
        samples["ours"].append(ours["seconds"][-1])
        for name, seconds in zip(STEPS, theirs["seconds"], strict=True):
            samples[name].append(seconds)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--orders", nargs="+", default=["columns", "random"],
                        choices=["columns", "rows", "random"], help="order of the entries")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, default=FOLDER / "market_speed.json")
    options = parser.parse_args()

    FOLDER.mkdir(parents=True, exist_ok=True)
    build = ["cargo", "build", "--release", "-p", "sparserl-core", "--example", "market_speed"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = str(target / "release" / "examples" / "market_speed")

    results = []
    print(f"{'order':8} {'threads':>7} {'reader':10} {'median':>8} {'least':>8} {'÷ ours':>8}")
    for order in options.orders:
        path = FOLDER / f"{order}-{options.entries}.mtx"
        if not path.exists():
            command = [python(), "-c", GENERATE, str(path), str(options.entries), order]
            subprocess.run(command, check=True)
            os.replace(f"{path}.part", path)
        path.read_bytes()  # into the page cache
        for threads in options.threads:
            samples = measure(path, threads, options.repeats, binary)
            ours = statistics.median(samples["ours"])
            for name, seconds in samples.items():
                median = statistics.median(seconds)
                print(f"{order:8} {threads:7} {name:10} {median:7.3f}s {min(seconds):7.3f}s "
                      f"{median / ours:7.2f}×", flush=True)
            results.append({"order": order, "threads": threads, "entries": options.entries,
                            "bytes": path.stat().st_size, "seconds": samples})
    report = {"cores": os.cpu_count(), "load": os.getloadavg(), "results": results}
    options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"samples in {options.json}")


if __name__ == "__main__":
    main()
