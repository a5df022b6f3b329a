//! A kernel made ready to be judged on a matrix: machine code, launch, arguments, and the arrays that it reads.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sparserl_core::codegen::{ArgumentKind, CudaSource};
use sparserl_core::layout::{ArrayData, ArrayRole, Packed, PackedPart};

use crate::device::Geometry;
use crate::nvrtc::Cubin;

/// A kernel with all that a launch on one matrix takes, besides the dense operands.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(crate) cubin: Cubin,
    pub(crate) launch: Launch,
    /// What the launch's [`Parameter::Array`]s refer to.
    pub(crate) arrays: Vec<HostArray>,
}

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) geometry: Geometry,
    pub(crate) parameters: Vec<Parameter>,
    /// Bytes of arrays that every right launch has to read.
    pub(crate) compulsory_bytes: u64,
}

/// A parameter of a kernel, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parameter {
    /// The dense input, row-major.
    Input,
    /// The dense output, row-major.
    Output,
    /// α, of the element type. A kernel without it computes with α = 1.
    Alpha,
    /// β, of the element type. A kernel without it computes with β = 0.
    Beta,
    /// One of the executable's arrays, by its index. Only read.
    Array(usize),
    /// Memory of its own of so many bytes, zero before the first launch.
    Workspace(u64),
    /// An `int`.
    I32(i32),
}

/// An array that kernels read, and its name in a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct HostArray {
    pub(crate) key: ArrayKey,
    pub(crate) data: ArrayData,
}

/// A hash of an array's bytes: arrays with the same key are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ArrayKey([u8; 32]);

impl HostArray {
    pub(crate) fn new(data: ArrayData) -> Self {
        Self { key: ArrayKey(*blake3::hash(data.bytes()).as_bytes()), data }
    }
}

impl Executable {
    /// The kernel that a program was turned into: `packed` and `source` are of one program, `cubin` was compiled from
    /// `source`.
    #[must_use]
    pub fn of_program(packed: Packed, source: &CudaSource, cubin: Cubin) -> Self {
        let compulsory_bytes = packed.parts.iter().map(compulsory_bytes).sum();
        let mut arrays = Vec::new();
        let mut packed_arrays = packed.parts.into_iter().flat_map(|part| part.arrays);
        let mut parameters = Vec::new();
        for argument in &source.arguments {
            parameters.push(match argument.kind {
                ArgumentKind::Input => Parameter::Input,
                ArgumentKind::Output => Parameter::Output,
                ArgumentKind::Alpha => Parameter::Alpha,
                ArgumentKind::Beta => Parameter::Beta,
                ArgumentKind::Matrix | ArgumentKind::Workspace => match packed_arrays.next() {
                    Some(array) if array.role == ArrayRole::Matrix => {
                        arrays.push(HostArray::new(array.data));
                        Parameter::Array(arrays.len() - 1)
                    }
                    Some(array) => Parameter::Workspace(array.data.bytes().len() as u64),
                    // Packing and emission agree on the arrays; without one the launch is refused.
                    None => Parameter::Workspace(0),
                },
            });
        }
        let geometry = Geometry::linear(source.launch.grid, source.launch.block);
        let launch = Launch { geometry, parameters, compulsory_bytes };
        Self { cubin, launch, arrays }
    }

    /// A kernel from anywhere that reads plain arrays of the matrix.
    ///
    /// Of its arrays nothing is compulsory: it may have been written for this matrix, with all of it in the code.
    pub(crate) fn foreign(
        cubin: Cubin,
        geometry: Geometry,
        parameters: Vec<Parameter>,
        arrays: Vec<ArrayData>,
    ) -> Self {
        let launch = Launch { geometry, parameters, compulsory_bytes: 0 };
        Self { cubin, launch, arrays: arrays.into_iter().map(HostArray::new).collect() }
    }
}

/// Bytes of a part's arrays that have to be read. Of arrays with padding, which some kernels skip, as many elements as the
/// part has entries.
fn compulsory_bytes(part: &PackedPart) -> u64 {
    let arrays = part.arrays.iter().filter(|array| array.role == ArrayRole::Matrix);
    let bytes = arrays.map(|array| {
        let (bytes, length) = (array.data.bytes().len(), array.data.len().max(1));
        if length > part.nnz.max(part.rows.len() + 1) { bytes / length * part.nnz } else { bytes }
    });
    bytes.sum::<usize>() as u64
}

/// The different arrays of some executables.
pub(crate) fn distinct_arrays<'e>(executables: &[&'e Executable]) -> Vec<&'e HostArray> {
    let mut seen = BTreeSet::new();
    let arrays = executables.iter().flat_map(|executable| &executable.arrays);
    arrays.filter(|array| seen.insert(array.key)).collect()
}
