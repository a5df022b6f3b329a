//! Kernels on a real device. Without a driver or a GPU every test is reported as ignored, never as
//! passed.
//!
//! A kernel that faults makes the rest of the process unable to use the device, so nothing here
//! does.

mod case;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers, Cubin};
use sparserl_gpu::run::device::{
    Argument, Device, DeviceBuffer, Fill, GUARD_BYTES, Geometry, Guard, LaunchError, Module,
    POISON_WORD, Side, poison,
};

use case::{Case, CaseArgument, CaseError, CaseOutcome, run_case};

type Check = fn(&Gpu) -> Result<(), Failed>;

/// The tests written here, by hand. A module that generates more adds its own list to [`trials`].
const CHECKS: [(&str, Check); 10] = [
    ("device::is_known", device_is_known),
    ("buffer::round_trip", buffers_give_back_what_they_were_given),
    ("buffer::fill", fills_reach_every_byte),
    ("kernel::saxpy", saxpy_is_right),
    ("guard::overrun", writing_past_an_output_is_caught),
    ("guard::underrun", writing_before_an_output_is_caught),
    ("poison::unwritten", an_unwritten_output_stays_poisoned),
    ("input::mutated", changing_an_input_is_caught),
    ("case::again", a_case_keeps_its_buffers_from_launch_to_launch),
    ("launch::refused", wrong_launches_are_typed_errors),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    // A broken driver is no absent one: then the tests run and fail.
    let absent = Device::open(0).is_err_and(|error| error.is_absence());
    let trial = |(name, check): (&str, Check)| {
        Trial::test(name, move || check(&Gpu::open()?)).with_ignored_flag(absent)
    };
    CHECKS.into_iter().map(trial).collect()
}

/// The device and a compiler for it.
struct Gpu {
    device: Device,
    compilers: Compilers,
}

impl Gpu {
    fn open() -> Result<Self, Failed> {
        Ok(Self { device: Device::open(0)?, compilers: Compilers::discover()? })
    }

    fn compile(&self, source: &str, kernel: &str) -> Result<Cubin, Failed> {
        let architecture = self.device.architecture()?;
        let (driver_major, _) = self.device.driver_version()?;
        let nvrtc = self.compilers.for_device(architecture, driver_major)?;
        Ok(nvrtc.compile(source, kernel, architecture, &CompileOptions::default())?)
    }
}

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(const float* x, float* y, float a, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"#;

/// Writes `n` floats from `first` on, whatever the output's length.
const WRITER: &str = r#"
extern "C" __global__ void writer(float* y, unsigned long long first, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[(long long)first + i] = 1.0f;
}
"#;

/// Larger than a block and off every multiple.
const N: u32 = 1000;

fn device_is_known(gpu: &Gpu) -> Result<(), Failed> {
    ensure(!gpu.device.name()?.is_empty(), "the device has no name")?;
    ensure(gpu.device.compute_capability()?.0 >= 7, "older than Volta")?;
    ensure(gpu.device.driver_version()?.0 >= 12, "a driver before CUDA 12")?;
    gpu.device.synchronize()?;
    Ok(())
}

fn buffers_give_back_what_they_were_given(gpu: &Gpu) -> Result<(), Failed> {
    for length in [0, 1, 3, 4, 255, 4097, 1 << 20] {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
        let mut buffer = DeviceBuffer::from_bytes(&gpu.device, &bytes)?;
        equal(&buffer.download()?, &bytes)?;
        equal(&buffer.checksum()?, blake3::hash(&bytes).as_bytes())?;
        equal(&buffer.guard()?, &Guard::Intact)?;
        ensure(buffer.address() % 256 == 0, "unaligned")?;
        ensure(buffer.upload(&vec![0; bytes.len() + 1]).is_err(), "a wrong length was taken")?;
    }
    Ok(())
}

fn fills_reach_every_byte(gpu: &Gpu) -> Result<(), Failed> {
    for length in [0, 1, 6, 1023, 4096] {
        let mut buffer = DeviceBuffer::new(&gpu.device, length)?;
        buffer.fill(Fill::Byte(0xa5))?;
        equal(&buffer.download()?, &vec![0xa5; length])?;
        buffer.fill(Fill::Poison)?;
        equal(&buffer.download()?, &poison(length))?;
        equal(&buffer.guard()?, &Guard::Intact)?;
    }
    Ok(())
}

fn saxpy_is_right(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(SAXPY, "saxpy")?;
    let x: Vec<f32> = (0..N).map(|i| i as f32 * 0.25).collect();
    let before = poison(4 * N as usize);
    let outcome = run_case(
        &gpu.device,
        &cubin,
        Geometry::linear(N.div_ceil(128), 128),
        &[
            CaseArgument::Input(&bytes(&x)),
            CaseArgument::Output(&before),
            CaseArgument::F32(-2.0),
            CaseArgument::U32(N),
        ],
    )?;
    ensure(outcome.is_clean(), "something but the output was written")?;
    equal(&outcome.outputs[0].position, &1)?;
    let expected: Vec<f32> = x.iter().map(|x| -2.0 * x).collect();
    equal(&floats(&outcome.outputs[0].bytes), &expected)
}

fn writing_past_an_output_is_caught(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(WRITER, "writer")?;
    one_float_was_damaged(&write(gpu, &cubin, 0, N + 1)?, Side::After, 1)?;

    // As far as the zone reaches.
    let zone = (GUARD_BYTES / 4) as u32;
    let outcome = write(gpu, &cubin, (N + zone - 1).into(), 1)?;
    one_float_was_damaged(&outcome, Side::After, GUARD_BYTES - 3)
}

fn writing_before_an_output_is_caught(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(WRITER, "writer")?;
    one_float_was_damaged(&write(gpu, &cubin, u64::MAX, N)?, Side::Before, 1)
}

/// Up to three of its bytes may happen to be those that were there.
fn one_float_was_damaged(outcome: &CaseOutcome, side: Side, nearest: usize) -> Result<(), Failed> {
    let message = format!("{:?}, expected one float {nearest} bytes {side:?}", outcome.damaged);
    let [(0, damage)] = outcome.damaged[..] else { return Err(message.into()) };
    let is_near = (nearest..nearest + 4).contains(&damage.distance);
    ensure(damage.side == side && is_near && (1..=4).contains(&damage.bytes), &message)
}

fn an_unwritten_output_stays_poisoned(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(WRITER, "writer")?;
    let outcome = write(gpu, &cubin, 0, N - 1)?;
    ensure(outcome.is_clean(), "a guard zone was written")?;
    let (last, written) = outcome.outputs[0].bytes.split_last_chunk::<4>().map_or_else(
        || Err(Failed::from("the output is gone")),
        |(rest, last)| Ok((*last, rest)),
    )?;
    ensure(f32::from_le_bytes(last).is_nan(), "the unwritten float is a number")?;
    equal(&u32::from_le_bytes(last), &POISON_WORD)?;
    ensure(floats(written).iter().all(|&y| y == 1.0), "a float was not written")
}

/// Lets `writer` loose on an output of [`N`] floats.
fn write(gpu: &Gpu, cubin: &Cubin, first: u64, n: u32) -> Result<CaseOutcome, CaseError> {
    let output = poison(4 * N as usize);
    let arguments = [CaseArgument::Output(&output), CaseArgument::U64(first), CaseArgument::U32(n)];
    run_case(&gpu.device, cubin, Geometry::linear(n.div_ceil(128), 128), &arguments)
}

fn changing_an_input_is_caught(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(WRITER, "writer")?;
    let input = bytes(&[0.0; 8]);
    let arguments = [CaseArgument::Input(&input), CaseArgument::U64(7), CaseArgument::U32(1)];
    let outcome = run_case(&gpu.device, &cubin, Geometry::linear(1, 32), &arguments)?;
    equal(&outcome.changed_inputs, &vec![0])?;
    ensure(!outcome.is_clean() && outcome.outputs.is_empty(), "the change was not reported")
}

/// Counts its launches in `counter`.
const COUNTING: &str = r#"
extern "C" __global__ void counting(const unsigned* step, unsigned* counter, unsigned factor) {
    counter[threadIdx.x] += *step * factor;
}
"#;

fn a_case_keeps_its_buffers_from_launch_to_launch(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(COUNTING, "counting")?;
    let words = |value: u32, count: usize| value.to_le_bytes().repeat(count);
    let arguments = [
        CaseArgument::Input(&words(3, 1)),
        CaseArgument::Output(&words(1, 32)),
        CaseArgument::U32(1),
    ];
    let mut case = Case::new(&gpu.device, &cubin, &arguments)?;
    case.launch(Geometry::linear(1, 32))?;
    case.launch(Geometry::linear(1, 32))?;
    let counter = |case: &Case| Ok::<_, CaseError>(case.outcome()?.outputs[0].bytes.clone());
    equal(&counter(&case)?, &words(7, 32))?;

    case.set(0, CaseArgument::Input(&words(5, 1)))?;
    case.set(2, CaseArgument::U32(2))?;
    case.launch(Geometry::linear(1, 32))?;
    equal(&counter(&case)?, &words(17, 32))?;
    ensure(case.outcome()?.is_clean(), "setting an input looks like a change of it")?;

    for (position, argument) in
        [(0, CaseArgument::U32(1)), (2, CaseArgument::F32(1.0)), (3, CaseArgument::U32(1))]
    {
        let refused = case.set(position, argument);
        ensure(refused == Err(CaseError::Unlike { position }), &format!("{refused:?}"))?;
    }
    ensure(case.set(1, CaseArgument::Output(&[0; 4])).is_err(), "another length was taken")
}

fn wrong_launches_are_typed_errors(gpu: &Gpu) -> Result<(), Failed> {
    let cubin = gpu.compile(WRITER, "writer")?;
    let kernel = Module::load(&gpu.device, &cubin)?.kernel("writer")?;
    equal(&kernel.parameters().to_vec(), &vec![8, 8, 4])?;
    let buffer = DeviceBuffer::new(&gpu.device, 4)?;
    let right = [Argument::Buffer(&buffer), Argument::U64(0), Argument::U32(1)];
    for (grid, block) in [(1, 0), (0, 32), (1, 1025), (u32::MAX, 32)] {
        let error = kernel.launch(Geometry::linear(grid, block), &right);
        ensure(
            matches!(error, Err(LaunchError::Refused { .. })),
            &format!("{grid} blocks of {block} threads gave {error:?}"),
        )?;
    }
    for wrong in [&right[..2], &[Argument::U32(0); 3], &[]] {
        let error = kernel.launch(Geometry::linear(1, 32), wrong);
        ensure(matches!(error, Err(LaunchError::Arguments { .. })), &format!("{error:?}"))?;
    }
    ensure(Module::load(&gpu.device, &cubin)?.kernel("reader").is_err(), "found a reader")?;
    // All of these leave the device usable.
    Ok(kernel.launch(Geometry::linear(1, 32), &right)?)
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

fn ensure(condition: bool, message: &str) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into()) }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), Failed> {
    let differ = || format!("found    {found:?}\nexpected {expected:?}");
    if found == expected { Ok(()) } else { Err(differ().into()) }
}
