#!/usr/bin/env python3
"""What NVIDIA's compute-sanitizer finds of the bugs planted in tests/emulator/bugs.

Needs nvcc, compute-sanitizer, a GPU, and Python's standard library. Each source is compiled with a host program that
puts every array into an allocation of its own and launches the kernel once; then each tool looks at it. The kernels of
tests/emulator/kernels, which are right, run under the tools too, and must be silent; their results are verified.

    python3 tests/sanitizer/side_by_side.py --output results

writes results/side_by_side.json and results/side_by_side.md. In the table `line` means that the tool reported an error
and named a line of the bug, `found` that it reported one, `-` that it did not, `timeout` that it did not end in time.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOLDER = Path(__file__).resolve().parent
# Exit status of compute-sanitizer when it has found something, and of the host program when CUDA reports an error.
FOUND, CUDA_ERROR = 9, 3
HANGS = {"deadlock", "endless", "over-budget"}

HOST = r"""
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include "SOURCE"

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(CUDA_ERROR);
}

// An allocation of exactly that size, with the file's bytes or with nothing in it.
static void* buffer(const char* file, size_t bytes) {
  void* place = nullptr;
  check(cudaMalloc(&place, bytes), "cudaMalloc");
  if (file == nullptr) return place;
  void* host = std::malloc(bytes);
  std::FILE* stream = std::fopen(file, "rb");
  if (host == nullptr || stream == nullptr || std::fread(host, 1, bytes, stream) != bytes) {
    std::fprintf(stderr, "cannot read %s\n", file);
    std::exit(2);
  }
  std::fclose(stream);
  check(cudaMemcpy(place, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  std::free(host);
  return place;
}

int main() {
ARGUMENTS
  check(cudaLaunchKernel(reinterpret_cast<const void*>(&KERNEL), dim3(GRID), dim3(BLOCK), arguments, SHARED, nullptr),
        "launch");
  check(cudaDeviceSynchronize(), "kernel");
RESULT
  return 0;
}
"""

RESULT = r"""
  void* host = std::malloc(BYTES);
  check(cudaMemcpy(host, BUFFER, BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy");
  std::FILE* stream = std::fopen("result.bin", "wb");
  if (stream == nullptr || std::fwrite(host, 1, BYTES, stream) != BYTES) return 2;
  std::fclose(stream);
"""


def host_program(case):
    lines, places = [], []
    for number, argument in enumerate(case.arguments):
        if argument.is_buffer:
            file = "nullptr" if argument.numbers is None else f'"{number}.bin"'
            lines.append(f"  void* a{number} = buffer({file}, {len(argument.bytes)});")
            places.append(f"&a{number}")
        else:
            numbers = ", ".join(str(byte) for byte in argument.bytes)
            lines.append(f"  alignas(8) unsigned char a{number}[] = {{{numbers}}};")
            places.append(f"a{number}")
    lines.append(f"  void* arguments[] = {{{', '.join(places)}}};")
    result = ""
    if case.expectation:
        argument = case.expected()[0]
        result = RESULT.replace("BYTES", str(len(argument.bytes)))
        result = result.replace("BUFFER", f"a{case.arguments.index(argument)}")
    fields = {
        "SOURCE": case.path.name,
        "ARGUMENTS": "\n".join(lines),
        "KERNEL": case.name,
        "GRID": ", ".join(map(str, case.grid)),
        "BLOCK": ", ".join(map(str, case.block)),
        "SHARED": str(case.shared),
        "RESULT": result,
        "CUDA_ERROR": str(CUDA_ERROR),
    }
    # The longest alternative first, so that `CUDA_ERROR` is no part of another name.
    names = sorted(fields, key=len, reverse=True)
    return re.sub(r"\b(" + "|".join(names) + r")\b", lambda match: fields[match[1]], HOST)


def run(command, folder, limit):
    """Exit status (None when it took too long), output, seconds."""
    start = time.monotonic()
    # A session of its own, so that what the tool starts ends with it.
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            output = b""
        status = None
    return status, output.decode(errors="replace"), round(time.monotonic() - start, 2)


def build(case, folder, arguments):
    """Compiles the case in a folder of its own; the compiler's complaints, or None."""
    folder.mkdir(parents=True)
    shutil.copy(case.path, folder)
    (folder / "main.cu").write_text(host_program(case))
    for number, argument in enumerate(case.arguments):
        if argument.is_buffer and argument.numbers is not None:
            (folder / f"{number}.bin").write_bytes(argument.bytes)
    command = [arguments.nvcc, "-std=c++17", "-lineinfo", f"-arch={arguments.arch}", "-o", "main", "main.cu"]
    status, output, _ = run(command, folder, 120)
    return None if status == 0 else output or "nvcc took too long"


def plain(case, folder, limit):
    """What comes of it without a tool: `ok`, `ran`, `wrong: ...`, an error of CUDA's, or `timeout`."""
    status, output, _ = run(["./main"], folder, limit)
    if status is None:
        return "timeout"
    if status != 0:
        return output.strip() or f"exit status {status}"
    if not case.expectation:
        return "ran"
    argument, expected = case.expected()
    got = corpus.decode(argument.kind, (folder / "result.bin").read_bytes())
    for index, (number, right) in enumerate(zip(got, expected, strict=True)):
        if not abs(number - right) <= 1e-5 * max(1, abs(right)):
            return f"wrong: element {index} is {number}, not {right}"
    return "ok"


def look(case, folder, tool, arguments):
    """What a tool makes of it."""
    command = [arguments.sanitizer, "--tool", tool, "--print-limit", "5", "--error-exitcode", str(FOUND), "./main"]
    status, output, seconds = run(command, folder, arguments.limit)
    return verdict(case, status, output) | {"seconds": seconds}


def verdict(case, status, output):
    reports = [line.removeprefix("=========").strip() for line in output.splitlines() if line.startswith("=========")]
    named = {int(number) for line in reports for number in re.findall(rf"\b{case.name}\.cu:(\d+)", line)}
    # `ERROR SUMMARY: 2 errors`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`
    summaries = [line for line in reports if "SUMMARY" in line]
    has_errors = any(re.search(r"\b[1-9]\d* (error|hazard|warning)", line) for line in summaries)
    first = next((line for line in reports if is_report(line)), "")
    if named & set(case.bugs):
        word = "line"
    elif has_errors or status == FOUND:
        word = "found"
    elif status is None:
        word = "timeout"
    elif status not in (0, CUDA_ERROR) or not summaries:
        word = "failed"
    else:
        word = "-"
    tail = output[-600:] if word == "failed" else ""
    return {"verdict": word, "lines": sorted(named), "first": first, "timed_out": status is None, "tail": tail}


def is_report(line):
    return bool(line) and "SUMMARY" not in line and not line.startswith(("COMPUTE-SANITIZER", "Copyright"))


def examine(cases, folder, arguments, pool):
    """One record for each case."""
    folders = {case: folder / case.set / case.name for case in cases}
    complaints = dict(zip(cases, pool.map(lambda case: build(case, folders[case], arguments), cases)))
    built = [case for case in cases if complaints[case] is None]
    # Those that never end keep the GPU busy, so that they come last.
    built.sort(key=lambda case: not HANGS.isdisjoint(case.kinds()))
    ran = {case: pool.submit(plain, case, folders[case], arguments.limit) for case in built}
    looks = {
        (case, tool): pool.submit(look, case, folders[case], tool, arguments)
        for hangs in (False, True)
        for tool in TOOLS
        for case in built
        if HANGS.isdisjoint(case.kinds()) != hangs
    }
    return [
        {
            "set": case.set,
            "name": case.name,
            "kinds": case.kinds(),
            "bug_lines": sorted(case.bugs),
            "compiler": complaints[case],
            "plain": ran[case].result() if case in ran else None,
            "tools": {tool: looks[case, tool].result() for tool in TOOLS} if case in ran else {},
        }
        for case in cases
    ]


def table(records):
    bugs = [record for record in records if record["set"] == "bugs"]
    lines = ["| bug | expected | without a tool | " + " | ".join(TOOLS) + " |", "|" + "---|" * (3 + len(TOOLS))]
    for record in bugs:
        words = [record["tools"].get(tool, {}).get("verdict", "not compiled") for tool in TOOLS]
        outcome = (record["plain"] or "").split("\n")[0].replace("|", "/")
        lines.append(f"| {record['name']} | {', '.join(record['kinds'])} | {outcome} | " + " | ".join(words) + " |")

    def count(words):
        return sum(any(look["verdict"] in words for look in record["tools"].values()) for record in bugs)

    lines += [
        "",
        f"Of {len(bugs)} bugs, at least one tool names the line of {count({'line'})} and reports an error for "
        f"{count({'line', 'found'})}.",
    ]
    strange = []
    for record in records:
        if record["compiler"]:
            strange.append(f"`{record['name']}` does not compile: {record['compiler'].strip().splitlines()[0]}")
        for tool, look in record["tools"].items():
            if look["verdict"] == "failed":
                strange.append(f"`{record['name']}`: {tool} failed: {' '.join(look['tail'].split())[-200:]}")
        if record["set"] == "kernels":
            if record["plain"] not in (None, "ok"):
                strange.append(f"`{record['name']}` is not right: {record['plain']}")
            for tool, look in record["tools"].items():
                if look["verdict"] not in ("-", "failed"):
                    strange.append(f"`{record['name']}`: {tool} says {look['verdict']}: {look['first']}")
    right = sum(record["set"] == "kernels" for record in records)
    lines += ["", f"Of {right} right kernels and of the tools themselves, this is not as expected:", ""]
    lines += [f"- {line}" for line in strange] or ["- nothing"]
    return "\n".join(lines) + "\n"


def find(program, nvcc=None):
    """A program of the CUDA toolkit."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    folders = [Path(home) / "bin"] if home else []
    folders += [Path(nvcc).resolve().parent] if nvcc else []
    folders.append(Path("/usr/local/cuda/bin"))
    places = [shutil.which(program)] + [shutil.which(program, path=str(folder)) for folder in folders]
    found = next((place for place in places if place), None)
    return found or sys.exit(f"error: no {program}: put it on the PATH, or set CUDA_HOME")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, default=FOLDER.parent / "emulator", help="folder of bugs and kernels")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder for what it finds")
    parser.add_argument("--arch", default="native", help="for nvcc, such as sm_90")
    parser.add_argument("--limit", type=float, default=20, help="seconds for each run of a tool")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--fingerprints", action="store_true", help="print a hash of each case's data and end")
    arguments = parser.parse_args()
    cases = [case for case in corpus.load(arguments.sources) if arguments.only in case.name]
    if arguments.fingerprints:
        print("\n".join(case.fingerprint() for case in cases))
        return
    arguments.nvcc = find("nvcc")
    arguments.sanitizer = find("compute-sanitizer", arguments.nvcc)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        records = examine(cases, Path(folder), arguments, pool)
    arguments.output.mkdir(parents=True, exist_ok=True)
    versions = [run([program, "--version"], ".", 20)[1].strip() for program in (arguments.nvcc, arguments.sanitizer)]
    result = {"versions": versions, "seconds": round(time.monotonic() - start), "cases": records}
    (arguments.output / "side_by_side.json").write_text(json.dumps(result, indent=1))
    text = table(records)
    (arguments.output / "side_by_side.md").write_text(text)
    print(text)
    print(f"{len(cases)} cases in {result['seconds']} s")


if __name__ == "__main__":
    main()
