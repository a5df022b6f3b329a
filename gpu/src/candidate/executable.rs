//! A kernel made ready to be judged on a matrix.
//!
//! ```text
//! program, packed ─┐
//! CUDA, matrix ────┴─► Prepared: launch, arrays ─┬─► Executable, with machine code: for a GPU
//!                                                └─► emulated, with PTX
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sparserl_core::codegen::ArgumentKind;
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::{ArrayData, ArrayRole, ElementType, Packed, PackedPart};

use crate::compile::nvrtc::Cubin;
use crate::run::device::Geometry;

/// All that a launch on one matrix takes besides code and the dense operands.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) launch: LaunchTemplate,
    /// What the launch's [`Parameter::Array`]s refer to.
    pub(crate) arrays: Vec<HostArray>,
    /// Names of the parameters in the source, in order.
    pub(crate) names: Vec<String>,
}

/// A kernel's machine code with all that a launch on one matrix takes, besides the dense operands.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(crate) cubin: Cubin,
    pub(crate) launch: LaunchTemplate,
    /// What the launch's [`Parameter::Array`]s refer to.
    pub(crate) arrays: Vec<HostArray>,
}

/// A launch before the dense operands and the arrays have addresses: what is passed for each
/// parameter, by what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LaunchTemplate {
    pub(crate) geometry: Geometry,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether the kernel waits by itself for those before it in the stream, so that it may begin
    /// before they have ended.
    pub(crate) waits_itself: bool,
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
    /// Memory of its own, zero before the first launch.
    Workspace {
        /// Its size.
        bytes: u64,
        /// Whether it holds counters, which every launch leaves zero again.
        counts: bool,
    },
    /// A signed number of 32 bits.
    I32(i32),
    /// An unsigned number of 32 bits.
    U32(u32),
    /// An unsigned number of 64 bits.
    U64(u64),
}

/// An array that kernels read, and its name in a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct HostArray {
    pub(crate) key: ArrayKey,
    source: ArraySource,
}

/// Who has the elements.
#[derive(Clone, Debug)]
enum ArraySource {
    Own(Arc<ArrayData>),
    /// Array `array` of part `part`: the packed matrix is large, and whoever had it packed may want
    /// to keep it.
    Packed {
        packed: Arc<Packed>,
        part: usize,
        array: usize,
    },
}

/// A hash of an array's bytes: arrays with the same key are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ArrayKey([u8; 32]);

impl HostArray {
    fn new(source: ArraySource) -> Self {
        let of = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
        // Arrays of many packings are the same, and so is most of what is hashed.
        let key = source.data().map_or_else(|| of(&[]), |data| data.digest(of));
        Self { key: ArrayKey(key), source }
    }

    /// The elements as they lie in memory.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.source.data().map_or(&[], ArrayData::bytes)
    }
}

impl ArraySource {
    fn data(&self) -> Option<&ArrayData> {
        match self {
            Self::Own(data) => Some(data),
            &Self::Packed { ref packed, part, array } => {
                let array = packed.parts.get(part).and_then(|part| part.arrays.get(array));
                array.map(|array| &array.data)
            }
        }
    }
}

impl Prepared {
    /// The launch of a program's kernel.
    #[must_use]
    pub fn of_kernel<C>(kernel: &Kernel<C>) -> Self {
        let Kernel { packed, source, launch, .. } = kernel;
        let compulsory_bytes = packed.parts.iter().map(compulsory_bytes).sum();
        let geometry = Geometry::from(launch.geometry);
        let mut arrays = Vec::new();
        let packed_arrays = packed.parts.iter().enumerate().flat_map(|(part, packed)| {
            packed.arrays.iter().enumerate().map(move |(index, array)| (part, index, array))
        });
        let packed_arrays: Vec<_> = packed_arrays.collect();
        let mut parameters = Vec::new();
        let mut names = Vec::new();
        for (argument, place) in launch.with_arrays() {
            let packed_array = place.and_then(|place| packed_arrays.get(place));
            parameters.push(match argument.kind {
                ArgumentKind::Input => Parameter::Input,
                ArgumentKind::Output => Parameter::Output,
                ArgumentKind::Alpha => Parameter::Alpha,
                ArgumentKind::Beta => Parameter::Beta,
                ArgumentKind::Size(size) => match u32::try_from(size) {
                    Ok(size) if argument.element == ElementType::U32 => Parameter::U32(size),
                    _ => Parameter::U64(size),
                },
                ArgumentKind::Matrix | ArgumentKind::Workspace => match packed_array {
                    Some(&(part, index, array)) if array.role == ArrayRole::Matrix => {
                        let packed = Arc::clone(packed);
                        let source = ArraySource::Packed { packed, part, array: index };
                        arrays.push(HostArray::new(source));
                        Parameter::Array(arrays.len() - 1)
                    }
                    Some((_, _, array)) => Parameter::Workspace {
                        bytes: array.data.bytes().len() as u64,
                        counts: array.role == ArrayRole::Counters,
                    },
                    // Packing and emission agree on the arrays; without one the launch is refused.
                    None => Parameter::Workspace { bytes: 0, counts: false },
                },
            });
            names.push(argument.name.clone());
        }
        let waits_itself = source.waits_itself;
        let launch = LaunchTemplate { geometry, parameters, waits_itself, compulsory_bytes };
        Self { launch, arrays, names }
    }

    /// The launch of a kernel from anywhere that reads plain arrays of the matrix; `parameters`
    /// with their names.
    ///
    /// Of its arrays nothing is compulsory: it may have been written for this matrix, with all of
    /// it in the code.
    pub(crate) fn foreign(
        geometry: Geometry,
        parameters: Vec<(String, Parameter)>,
        arrays: Vec<ArrayData>,
    ) -> Self {
        let (names, parameters) = parameters.into_iter().unzip();
        let launch =
            LaunchTemplate { geometry, parameters, waits_itself: false, compulsory_bytes: 0 };
        let own = |data| HostArray::new(ArraySource::Own(Arc::new(data)));
        Self { launch, arrays: arrays.into_iter().map(own).collect(), names }
    }

    /// The same launch for a kernel that takes these of its parameters, by their places, under such
    /// a geometry. Nothing is compulsory, as for [`foreign`](Self::foreign).
    pub(crate) fn selected(self, places: &[usize], geometry: Geometry) -> Self {
        let Self { launch, arrays, names } = self;
        let of =
            |place: &usize| Some((*launch.parameters.get(*place)?, names.get(*place)?.clone()));
        let (parameters, names) = places.iter().filter_map(of).unzip();
        let waits_itself = launch.waits_itself;
        let launch = LaunchTemplate { geometry, parameters, waits_itself, compulsory_bytes: 0 };
        Self { launch, arrays, names }
    }

    /// The same launch, of the kernel from anywhere that this is the source of.
    pub(crate) fn of_source(mut self, source: &str) -> Self {
        self.launch.waits_itself = waits_for_predecessors(source);
        self
    }

    /// Adds the machine code of the kernel that this is the launch of.
    #[must_use]
    pub fn executable(self, cubin: Cubin) -> Executable {
        let Self { launch, arrays, .. } = self;
        Executable { cubin, launch, arrays }
    }
}

/// Whether somebody else's source has the wait for the kernels before it in the stream, in PTX or
/// by the name that CUDA's headers give it. That it waits soon enough is for judges to see.
fn waits_for_predecessors(source: &str) -> bool {
    ["griddepcontrol.wait", "cudaGridDependencySynchronize"]
        .iter()
        .any(|wait| source.contains(wait))
}

/// Bytes of a part's arrays that have to be read. Of arrays with padding, which some kernels skip,
/// as many elements as the part has entries.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sparserl_core::language::Program;
    use sparserl_core::layout::{Packer, pack};
    use sparserl_core::matrix::generate;

    use super::*;

    #[test]
    fn the_role_tells_counters_from_sums_whatever_their_type() {
        let text = "sparserl 3\nspmv f64\nblock 128\nkeep merge items=8 index=u32 values=plain cache=cached \
                    vector=1 reduction=scan\n";
        let program = Program::parse(text).unwrap();
        let matrix = generate::stencil5(40, 40);
        let mut kernel = Kernel::<Cubin>::for_matrix(matrix.view(), &program).unwrap();
        // Sums in an element type that Rust has no floating-point type for, as half precision.
        let parts = &mut Arc::get_mut(&mut kernel.packed).unwrap().parts;
        for array in parts.iter_mut().flat_map(|part| &mut part.arrays) {
            if array.role == ArrayRole::PartialSums {
                array.data = ArrayData::U16(vec![0; array.data.len()].into());
            }
        }
        let prepared = Prepared::of_kernel(&kernel);
        let parameters = prepared.names.iter().zip(&prepared.launch.parameters);
        let counts = parameters.filter_map(|(name, parameter)| match parameter {
            Parameter::Workspace { counts, .. } => Some((name.as_str(), *counts)),
            _ => None,
        });
        assert_eq!(counts.collect::<Vec<_>>(), [("carry", false), ("tickets", true)]);
    }

    #[test]
    fn arrays_have_the_key_of_their_content_however_they_came_about() {
        let matrix = generate::stencil5(40, 40);
        let keys = |packed: Packed| -> Vec<ArrayKey> {
            let kernel = Kernel::<Cubin>::written(Arc::new(packed), None, Duration::ZERO);
            let prepared = Prepared::of_kernel(&kernel.unwrap());
            let hashed = |array: &HostArray| ArrayKey(*blake3::hash(array.bytes()).as_bytes());
            assert!(prepared.arrays.iter().all(|array| array.key == hashed(array)));
            prepared.arrays.iter().map(|array| array.key).collect()
        };
        let program = |lanes: u32, unroll: u32| {
            let text = format!(
                "sparserl 7\nspmv f64\nblock 128\nkeep chunk entries=32 index=u16 values=plain \
                 cache=cached vector=1 lanes={lanes} unroll={unroll}\n"
            );
            Program::parse(&text).unwrap()
        };
        let packer = Packer::new(matrix.view(), &|| Duration::ZERO);
        let shared = [program(1, 1), program(4, 2)].map(|p| keys(packer.pack(&p).unwrap().packed));
        assert_eq!(shared[0], shared[1]);
        assert_eq!(shared[0], keys(pack(matrix.view(), &program(2, 1)).unwrap()));
    }
}
