//! What a kernel is given for one launch.

use sparserl_core::matrix::Scalar;
use sparserl_emulator::launch::{Argument, Launch};
use sparserl_emulator::memory::{BufferId, Memory};

use crate::candidate::executable::{Parameter, Prepared};
use crate::run::device::Geometry;

/// A launch's arguments, and what of them is written.
pub(in crate::emulated) struct Given {
    pub(in crate::emulated) arguments: Vec<Argument>,
    /// Parsed signatures have one.
    pub(in crate::emulated) output: Option<BufferId>,
    /// The workspace's.
    pub(super) working: Vec<BufferId>,
}

/// Gives each parameter what it is; `input` and `output` make the dense operands' buffers.
pub(in crate::emulated) fn give<D: Scalar>(
    prepared: &Prepared,
    memory: &mut Memory,
    input: impl Fn(&mut Memory, &str) -> BufferId,
    output: impl Fn(&mut Memory, &str) -> BufferId,
    [alpha, beta]: [D::Accumulator; 2],
    workspace: Vec<Vec<u8>>,
) -> Given {
    let Prepared { launch, arrays, names } = prepared;
    let mut workspace = workspace.into_iter();
    let mut given = Given { arguments: Vec::new(), output: None, working: Vec::new() };
    for (&parameter, name) in launch.parameters.iter().zip(names) {
        let argument = match parameter {
            Parameter::Input => Argument::Buffer(input(memory, name)),
            Parameter::Output => {
                let buffer = output(memory, name);
                given.output.get_or_insert(buffer);
                Argument::Buffer(buffer)
            }
            Parameter::Alpha => Argument::Value(bytemuck::bytes_of(&alpha).to_vec()),
            Parameter::Beta => Argument::Value(bytemuck::bytes_of(&beta).to_vec()),
            Parameter::Array(index) => {
                let bytes = arrays.get(index).map_or(&[][..], |array| array.bytes());
                Argument::Buffer(memory.read_only(name, bytes))
            }
            Parameter::Workspace { .. } => {
                let buffer = memory.writable(name, &workspace.next().unwrap_or_default());
                given.working.push(buffer);
                Argument::Buffer(buffer)
            }
            Parameter::I32(value) => Argument::Value(value.to_le_bytes().to_vec()),
            Parameter::U32(value) => Argument::Value(value.to_le_bytes().to_vec()),
            Parameter::U64(value) => Argument::Value(value.to_le_bytes().to_vec()),
        };
        given.arguments.push(argument);
    }
    given
}

/// The launch of a kernel with these arguments.
pub(in crate::emulated) fn launch_of(prepared: &Prepared, arguments: Vec<Argument>) -> Launch {
    let Geometry { grid, block, dynamic_shared, .. } = prepared.launch.geometry;
    Launch { grid, block, dynamic_shared, arguments }
}

/// The memory of each parameter that is workspace, zero.
pub(in crate::emulated) fn fresh_workspace(prepared: &Prepared) -> Vec<Vec<u8>> {
    let bytes = |parameter: &Parameter| match *parameter {
        Parameter::Workspace { bytes, .. } => usize::try_from(bytes).ok(),
        _ => None,
    };
    prepared.launch.parameters.iter().filter_map(bytes).map(|n| vec![0; n]).collect()
}
