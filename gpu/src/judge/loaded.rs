//! Kernels on a device, and the arrays that they share.

use std::collections::BTreeMap;
use std::sync::Arc;

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Violation};

use super::Stop;
use super::oracle::{Region, factor};
use super::problem::Operands;
use crate::candidate::executable::{ArrayKey, LaunchTemplate, Parameter};
use crate::candidate::raw::GRID_BARRIER;
use crate::compile::nvrtc::Cubin;
use crate::run::device::{
    Argument, BoundKernel, Device, DeviceBuffer, DeviceError, Kernel, Module, Serialization,
};

/// Arrays that are on the device, by what they hold.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    arrays: BTreeMap<ArrayKey, Arc<DeviceBuffer>>,
}

impl Holdings {
    pub(crate) fn add(
        &mut self,
        device: &Device,
        key: ArrayKey,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.arrays.insert(key, Arc::new(DeviceBuffer::from_bytes(device, bytes)?));
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: ArrayKey) {
        self.arrays.remove(&key);
    }
}

/// A kernel on the device with everything it needs but the dense operands.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    kernel: Kernel,
    serialization: Serialization,
    pub(crate) launch: LaunchTemplate,
    arrays: Vec<Arc<DeviceBuffer>>,
    workspace: Vec<DeviceBuffer>,
    /// Variables that its machine code declares, to see whether it keeps anything there.
    variables: Vec<Region>,
}

impl LoadedKernel {
    /// Loads a kernel; `keys` are those of the arrays that its launch refers to.
    pub(crate) fn load(
        device: &Device,
        holdings: &Holdings,
        cubin: &Cubin,
        launch: LaunchTemplate,
        keys: &[ArrayKey],
    ) -> Result<Self, Stop> {
        let refused = |error: DeviceError| match error {
            DeviceError::Driver { .. } => {
                Stop::Outcome(Outcome::LaunchFailed { reason: error.to_string() })
            }
            other => Stop::Broken(other),
        };
        let module = Module::load(device, cubin).map_err(refused)?;
        let kernel = module.kernel(cubin.kernel()).map_err(refused)?;
        let missing = || DeviceError::WrongArguments { reason: "an array was not sent".into() };
        let held = |key| holdings.arrays.get(key).cloned().ok_or_else(missing);
        let arrays = keys.iter().map(held).collect::<Result<_, _>>()?;
        let mut workspace = Vec::new();
        for parameter in &launch.parameters {
            if let &Parameter::Workspace { bytes, .. } = parameter {
                // Whole words, so that it can be digested.
                let bytes = usize::try_from(bytes.next_multiple_of(4)).unwrap_or(usize::MAX);
                let mut buffer = DeviceBuffer::new(device, bytes)?;
                buffer.fill(crate::run::device::Fill::Byte(0))?;
                workspace.push(buffer);
            }
        }
        let variables = watched_variables(&module, cubin)?;
        let waits_for_grid = cubin
            .global_variables()
            .is_some_and(|names| names.iter().any(|name| name == GRID_BARRIER));
        let serialization = match waits_for_grid {
            true => Serialization::Cooperative,
            false => Serialization::of(launch.waits_itself, cubin.architecture()),
        };
        Ok(Self { kernel, serialization, launch, arrays, workspace, variables })
    }

    /// Whether it computes with the α that it is given.
    pub(crate) fn takes_alpha(&self) -> bool {
        self.launch.parameters.contains(&Parameter::Alpha)
    }

    /// Whether it computes with the β that it is given.
    pub(crate) fn takes_beta(&self) -> bool {
        self.launch.parameters.contains(&Parameter::Beta)
    }

    /// Readies it for launches on some operands, of type `D`.
    pub(crate) fn bind<'k, D: Scalar>(
        &'k self,
        operands: &'k Operands,
        alpha: D::Accumulator,
        beta: D::Accumulator,
    ) -> Result<BoundKernel<'k>, Stop> {
        let mut workspace = self.workspace.iter();
        let missing = || DeviceError::WrongArguments { reason: "no such array".into() };
        let mut arguments = Vec::new();
        for &parameter in &self.launch.parameters {
            arguments.push(match parameter {
                Parameter::Input => Argument::Buffer(&operands.input),
                Parameter::Output => Argument::Buffer(&operands.output),
                Parameter::Alpha => factor::<D>(alpha),
                Parameter::Beta => factor::<D>(beta),
                Parameter::Array(index) => {
                    Argument::Buffer(self.arrays.get(index).ok_or_else(missing)?)
                }
                Parameter::Workspace { .. } => {
                    Argument::Buffer(workspace.next().ok_or_else(missing)?)
                }
                Parameter::I32(value) => Argument::U32(value.cast_unsigned()),
                Parameter::U32(value) => Argument::U32(value),
                Parameter::U64(value) => Argument::U64(value),
            });
        }
        let bound = self.kernel.bind(self.launch.geometry, &arguments).map_err(Stop::of_launch)?;
        Ok(bound.serialized(self.serialization))
    }

    /// Whether it begins before the kernels before it have ended.
    pub(crate) fn begins_early(&self) -> bool {
        self.serialization == Serialization::Programmatic
    }

    /// The variables that its machine code declares; it must not change them.
    pub(crate) fn variables(&self) -> &[Region] {
        &self.variables
    }

    /// The arrays that it must not change.
    pub(crate) fn array_regions(&self) -> impl Iterator<Item = Region> {
        self.arrays.iter().map(|array| array.whole())
    }

    /// The guard zones of its own memory.
    pub(crate) fn workspace_guards(&self) -> impl Iterator<Item = Region> {
        self.workspace.iter().flat_map(DeviceBuffer::guards)
    }
}

/// Where the variables of a kernel's machine code lie, in whole words.
fn watched_variables(module: &Module, cubin: &Cubin) -> Result<Vec<Region>, Stop> {
    let hidden = |reason: String| {
        let violation = Violation::KeepsState;
        Stop::Outcome(Outcome::WrongResult { violation, reason })
    };
    let unreadable = || hidden("its machine code cannot be searched for variables".to_owned());
    let calls = cubin.runtime_calls().ok_or_else(unreadable)?;
    if let Some(call) = calls.first() {
        return Err(hidden(match call.contains("malloc") {
            true => "it allocates memory, which outlives a launch".to_owned(),
            false => format!("it calls `{call}` of the device's runtime, which may keep something"),
        }));
    }
    let names = cubin.global_variables().ok_or_else(unreadable)?;
    let region = |name: &String| match module.variable(name) {
        Ok((address, bytes)) => {
            let start = address & !3;
            Ok((start, (address + bytes).next_multiple_of(4) - start))
        }
        Err(error) => Err(hidden(format!("its variable `{name}` cannot be watched: {error}"))),
    };
    names.iter().map(region).collect()
}
