//! The host programs that `gen` writes, without a GPU: the one in C++ is built, reads its files,
//! and runs with a driver that computes nothing, or what was expected.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Place, matrix};

/// A `libcuda.so.1` whose device memory is the host's. Where RIGHT is set, it names the type of a
/// kernel's output, and what is copied back from there has the expected elements.
const DRIVER: &str = r#"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long P;
static uint16_t nearest_f16(double value) {
  int exponent;
  frexp(fabs(value), &exponent);
  if (--exponent < -14) exponent = -14;
  int bits = (exponent + 15) * 1024 + (int)nearbyint(ldexp(fabs(value), 10 - exponent)) - 1024;
  return bits | (value < 0 ? 0x8000 : 0);
}
static uint16_t nearest_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
#define NOTHING(name) int name(void) { return 0; }
NOTHING(cuInit) NOTHING(cuDeviceGet) NOTHING(cuDevicePrimaryCtxRetain) NOTHING(cuCtxSetCurrent)
NOTHING(cuModuleLoadData) NOTHING(cuModuleGetFunction) NOTHING(cuCtxSynchronize)
NOTHING(cuEventCreate) NOTHING(cuEventRecord) NOTHING(cuEventSynchronize)
int cuMemAlloc_v2(P* p, size_t bytes) { *p = (P)(uintptr_t)malloc(bytes); return 0; }
int cuMemcpyHtoD_v2(P to, const void* from, size_t bytes) { memcpy((void*)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void* to, P from, size_t bytes) {
  memcpy(to, (void*)(uintptr_t)from, bytes);
  const char* type = getenv("RIGHT");
  if (type) {
    FILE* file = fopen("expected.txt", "r");
    size_t index; double value, bound;
    while (fscanf(file, "%zu %lf %lf", &index, &value, &bound) == 3)
      if (!strcmp(type, "f64")) ((double*)to)[index] = value;
      else if (!strcmp(type, "f16")) ((uint16_t*)to)[index] = nearest_f16(value);
      else if (!strcmp(type, "bf16")) ((uint16_t*)to)[index] = nearest_bf16(value);
      else ((float*)to)[index] = (float)value;
    fclose(file);
  }
  return 0;
}
int cuEventElapsedTime(float* milliseconds, void* a, void* b) { *milliseconds = 1; return 0; }
typedef struct { unsigned x, y, z, a, b, c, shared; void *stream, *attributes; unsigned count; } Launch;
int cuLaunchKernelEx(const Launch* launch, void* f, void** arguments, void** extra) {
  return arguments && *arguments && launch->x && launch->a ? 0 : 1;
}
"#;

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn make(folder: &Path, goal: &str, variables: &[(&str, &str)]) -> Output {
    let mut make = Command::new("make");
    make.arg("-s").arg(goal).current_dir(folder).env_remove("MAKEFLAGS");
    make.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn the_host_program_is_built_reads_its_arrays_and_tells_right_from_wrong() {
    if !["make", "c++", "cc"].into_iter().all(has) {
        return;
    }
    let place = Place::new();
    fs::write(place.path("driver.c"), DRIVER).unwrap();
    let library = place.path("libcuda.so.1");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(place.path("driver.c")).arg("-lm");
    assert!(cc.status().unwrap().success());
    let libraries = place.path("").to_str().unwrap().to_owned();

    for (name, arguments, output) in [
        ("beam.mtx", "", "f32"),
        ("rmat10.mtx.gz", "--op spmm --cols 8 --dtype f64", "f64"),
        ("poisson2d.mtx", "--dtype f32/f64/f64", "f64"),
        ("poisson2d.mtx", "--dtype f16", "f16"),
        ("rmat10.mtx.gz", "--op spmm --cols 16 --dtype bf16", "bf16"),
    ] {
        place.succeed(&format!("gen {} {arguments} -o out --force", matrix(name)));
        let folder = place.path("out");
        let plan = place.json("out/plan.json");
        let is_array = |kind: &str| kind == "matrix" || kind == "workspace";
        let arrays = plan["arguments"].as_array().unwrap().iter();
        let arrays = arrays.filter(|a| is_array(a["kind"].as_str().unwrap()));
        let bytes: u64 = arrays.clone().map(|a| a["bytes"].as_u64().unwrap()).sum();

        let check = make(&folder, "check", &[("CXXFLAGS", "-Wall -Wextra -Werror")]);
        let text = String::from_utf8_lossy(&check.stdout);
        let stderr = String::from_utf8_lossy(&check.stderr);
        let expected = format!("files      {} arrays of {bytes} bytes, ", arrays.count());
        assert!(check.status.success() && text.starts_with(&expected), "{text}{stderr}");

        let mut variables = vec![("LD_LIBRARY_PATH", libraries.as_str())];
        let wrong = make(&folder, "run", &variables);
        let stderr = String::from_utf8_lossy(&wrong.stderr);
        assert!(!wrong.status.success() && stderr.contains("error: wrong: element "), "{stderr}");
        variables.push(("RIGHT", output));
        let right = make(&folder, "run", &variables);
        let text = String::from_utf8_lossy(&right.stdout);
        assert!(right.status.success() && text.contains("time       10.00 µs"), "{text}");
        assert!(text.starts_with("right      "), "{text}");

        // A file that was cut short is noticed.
        let packed = fs::read(folder.join("packed.safetensors")).unwrap();
        fs::write(folder.join("packed.safetensors"), &packed[..packed.len() - 1]).unwrap();
        let cut = make(&folder, "check", &[]);
        let stderr = String::from_utf8_lossy(&cut.stderr);
        assert!(!cut.status.success() && stderr.contains("has another size"), "{stderr}");
    }
}

#[test]
fn the_program_in_python_is_python() {
    if !has("python3") {
        return;
    }
    let place = Place::new();
    place.succeed(&format!("gen {} --no-compile -o out", matrix("beam.mtx")));
    let compile = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
    let status =
        Command::new("python3").args(["-c", compile]).arg(place.path("out/run.py")).status();
    assert!(status.unwrap().success());
}
