use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

use half::{bf16, f16};

#[cfg(feature = "std")]
use crate::matrix::Digest;
use crate::matrix::{Elements, KeptOffsets, Scalar};
use crate::structure::FOUR;
use crate::syntax::{Access, IndexCoding, ValueCoding};
use crate::task::Dtype;

/// Entries that a block has in flight, at most: 512 threads with 8 each.
const STEP_PAST: u64 = 4096;

/// One array of a packed part, under its name within the part.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Name within the part, such as `row_offsets`.
    pub name: &'static str,
    /// Whether the kernel only reads it.
    pub role: ArrayRole,
    /// What reads it.
    pub(crate) reader: ArrayReader,
    /// The elements.
    pub data: ArrayData,
}

impl Array {
    /// An array of the layout's own that holds the matrix, which its call hands to its device
    /// function.
    pub(crate) fn matrix(name: &'static str, data: ArrayData) -> Self {
        Self { name, role: ArrayRole::Matrix, reader: ArrayReader::Layout, data }
    }

    /// An array with an element for each entry or slot, which the part decodes.
    pub(crate) fn entries(name: &'static str, data: ArrayData) -> Self {
        Self { reader: ArrayReader::PartByEntries, ..Self::matrix(name, data) }
    }

    /// An array that the part needs to decode others: bases, tables, rows.
    pub(crate) fn decoding(name: &'static str, data: ArrayData) -> Self {
        Self { reader: ArrayReader::Part, ..Self::matrix(name, data) }
    }

    /// Scratch memory for sums that blocks hand on to one another.
    pub(crate) fn partial_sums(name: &'static str, data: ArrayData) -> Self {
        Self { role: ArrayRole::PartialSums, ..Self::matrix(name, data) }
    }

    /// Scratch memory for counters of blocks.
    pub(crate) fn counters(name: &'static str, data: ArrayData) -> Self {
        Self { role: ArrayRole::Counters, ..Self::matrix(name, data) }
    }

    /// Scratch memory for rows that several groups of threads complete: so many bytes of partial
    /// sums, and counters of those that have come.
    pub(crate) fn fix_up(
        (name, sum): (&'static str, Dtype),
        bytes: u64,
        tickets: usize,
    ) -> [Self; 2] {
        let zeros = ArrayData::zeros(sum, bytes as usize / sum.size());
        let tickets = ArrayData::U32(alloc::vec![0; tickets].into());
        [Self::partial_sums(name, zeros), Self::counters("tickets", tickets)]
    }
}

/// What reads an array in device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ArrayReader {
    /// The layout's own device code.
    Layout,
    /// The part, whose functions say what the codings mean.
    Part,
    /// The part, by the entry: such an array is brought to L2 early.
    PartByEntries,
}

/// What the elements of an array are, and how many of them there are, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What an element is: `first entry of each row, and the end`.
    pub element: Cow<'static, str>,
    /// How many elements there are: `rows + 1`.
    pub shape: &'static str,
}

impl Meaning {
    pub(crate) fn new(element: &'static str, shape: &'static str) -> Self {
        Self { element: Cow::Borrowed(element), shape }
    }
}

/// How a layout calls what it stores, for the meaning of the arrays that all layouts have.
pub(crate) struct Stored {
    /// Rows whose columns share a base: `row`, `slice`.
    pub(crate) unit: &'static str,
    /// How many units there are.
    pub(crate) units: &'static str,
    /// What a column index belongs to: `entry`, `block`.
    pub(crate) indexed: &'static str,
    /// How many column indices there are.
    pub(crate) indices: &'static str,
    /// How many values there are.
    pub(crate) values: &'static str,
    /// What the value of a slot without an entry is, where the kernel reads it.
    pub(crate) empty: &'static str,
}

impl Stored {
    /// Meaning of an array that every layout may have; `None` for one of the layout's own.
    pub(crate) fn meaning(
        &self,
        array: &str,
        index: IndexCoding,
        access: Access,
    ) -> Option<Meaning> {
        let &Self { unit, units, indexed, indices, values, empty } = self;
        let (element, shape): (String, _) = match (array, access.values) {
            ("rows", _) => ("row of the matrix at each position".into(), "rows"),
            ("columns", _) if index.is_relative() => {
                (format!("column of each {indexed}, counted from its {unit}'s base"), indices)
            }
            ("columns", _) => (format!("column of each {indexed}"), indices),
            ("column_bases", _) => (format!("first column of each {unit}"), units),
            ("values", ValueCoding::Constant) => ("the value of all entries".into(), "1"),
            ("values", _) => (format!("value of each entry{empty}"), values),
            ("codes", _) => (format!("place of each entry's value in the table{empty}"), values),
            ("table", _) => ("the distinct values".into(), "distinct values"),
            _ => return None,
        };
        Some(Meaning { element: Cow::Owned(element), shape })
    }
}

/// What an array is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayRole {
    /// Holds the matrix; the kernel does not write it.
    Matrix,
    /// Workspace for partial sums: zero before the first launch, anything after it. Launches that
    /// share it must not overlap.
    PartialSums,
    /// Workspace for counters: zero before the first launch, and every launch leaves it zero again.
    /// Launches that share it must not overlap.
    Counters,
}

impl ArrayRole {
    /// Whether it is workspace, which the caller provides as zeros and kernels write.
    #[must_use]
    pub fn is_workspace(self) -> bool {
        match self {
            Self::Matrix => false,
            Self::PartialSums | Self::Counters => true,
        }
    }
}

macro_rules! element_types {
    ($($variant:ident $rust:ident $cuda:literal,)*) => {
        /// Elements of an array.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ArrayData { $(#[doc = concat!("`", stringify!($rust), "`")] $variant(Elements<$rust>),)* }

        impl ArrayData {
            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(v) => v.len(),)* }
            }

            /// The elements as they lie in memory (native byte order).
            #[must_use]
            pub fn bytes(&self) -> &[u8] {
                match self { $(Self::$variant(v) => bytemuck::cast_slice(v),)* }
            }

            /// A digest of these bytes, as [`Elements::digest`] says.
            #[cfg(feature = "std")]
            pub fn digest(&self, of: impl FnOnce(&[u8]) -> Digest) -> Digest {
                match self { $(Self::$variant(v) => v.digest(|v| of(bytemuck::cast_slice(v))),)* }
            }

            /// Type of the elements.
            #[must_use]
            pub fn element_type(&self) -> ElementType {
                match self { $(Self::$variant(_) => ElementType::$variant,)* }
            }
        }

        /// Type of the elements of an array.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ElementType { $(#[doc = concat!("`", stringify!($rust), "`")] $variant,)* }

        impl ElementType {
            /// Rust's name, for half precision that of the crate `half`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($rust),)* }
            }

            /// The type as device code writes it.
            #[must_use]
            pub fn cuda_type(self) -> &'static str {
                match self { $(Self::$variant => $cuda,)* }
            }

            /// Bytes of an element.
            #[must_use]
            pub fn size(self) -> usize {
                match self { $(Self::$variant => size_of::<$rust>(),)* }
            }
        }
    };
}

element_types! {
    U8 u8 "u8",
    U16 u16 "u16",
    U32 u32 "u32",
    U64 u64 "u64",
    I32 i32 "int",
    F32 f32 "float",
    F64 f64 "double",
    F16 f16 "f16",
    BF16 bf16 "bf16",
}

impl From<Dtype> for ElementType {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F64 => Self::F64,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::BF16,
        }
    }
}

impl ArrayData {
    /// So many zeros.
    pub(crate) fn zeros(dtype: Dtype, len: usize) -> Self {
        match dtype {
            Dtype::F32 => Self::F32(alloc::vec![0.0; len].into()),
            Dtype::F64 => Self::F64(alloc::vec![0.0; len].into()),
            Dtype::F16 => Self::F16(alloc::vec![f16::ZERO; len].into()),
            Dtype::BF16 => Self::BF16(alloc::vec![bf16::ZERO; len].into()),
        }
    }

    /// True when there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i` of an unsigned array; `None` past the end or for another type.
    pub(crate) fn unsigned(&self, i: usize) -> Option<u64> {
        match self {
            Self::U8(v) => v.get(i).map(|&n| u64::from(n)),
            Self::U16(v) => v.get(i).map(|&n| u64::from(n)),
            Self::U32(v) => v.get(i).map(|&n| u64::from(n)),
            Self::U64(v) => v.get(i).copied(),
            Self::I32(_) | Self::F32(_) | Self::F64(_) | Self::F16(_) | Self::BF16(_) => None,
        }
    }

    /// Numbers as the smallest of `u8`, `u16` and `u32` that holds `most`.
    pub(crate) fn smallest(most: usize, numbers: impl Iterator<Item = usize>) -> Self {
        if u8::try_from(most).is_ok() {
            Self::U8(numbers.map(|n| n as u8).collect())
        } else if u16::try_from(most).is_ok() {
            Self::U16(numbers.map(|n| n as u16).collect())
        } else {
            Self::U32(numbers.map(|n| n as u32).collect())
        }
    }

    /// Running sums from 0 of counts: `u32` when `limit` fits, else `u64`. Device code steps past
    /// an offset by up to a block's entries in flight, which has to fit as well.
    pub(crate) fn offsets(limit: u64, counts: impl Iterator<Item = u64>) -> Self {
        let sums = core::iter::once(0).chain(counts.scan(0u64, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        Self::positions(limit, sums)
    }

    /// Offsets of units with so many slots each, which begin at multiples of four: the first slot
    /// of each, with the empty ones behind its last in the two lowest bits, and the end. They are
    /// read by [`slots_by_fours`](Self::slots_by_fours).
    pub(crate) fn offsets_by_fours(counts: impl Iterator<Item = u64> + Clone) -> Self {
        let rounded = |count: u64| count.next_multiple_of(FOUR.into());
        let end = counts.clone().map(rounded).sum();
        let each = counts.scan(0, move |first, count| {
            let offset = *first + (rounded(count) - count);
            *first += rounded(count);
            Some(offset)
        });
        Self::positions(end, each.chain(core::iter::once(end)))
    }

    /// The slots of a unit, without the empty ones, by such offsets; `None` past the end, or where
    /// they are none.
    pub(crate) fn slots_by_fours(&self, unit: usize) -> Option<Range<usize>> {
        let (begin, end) = (self.unsigned(unit)?, self.unsigned(unit + 1)?);
        let four = u64::from(FOUR);
        let (first, end) = (begin / four * four, (end / four * four).checked_sub(begin % four)?);
        Some(first as usize..end as usize)
    }

    /// Values in an array of their own type, which shares them.
    pub(crate) fn of_values<T: Scalar>(values: Elements<T>) -> Option<Self> {
        match T::DTYPE {
            Dtype::F32 => values.of_type().map(Self::F32),
            Dtype::F64 => values.of_type().map(Self::F64),
            Dtype::F16 => values.of_type().map(Self::F16),
            Dtype::BF16 => values.of_type().map(Self::BF16),
        }
    }

    /// The offsets of a matrix, shared with it where they are as wide as
    /// [`positions`](Self::positions) makes them.
    pub(crate) fn of_offsets(offsets: KeptOffsets) -> Self {
        let last = match &offsets {
            KeptOffsets::U32(v) => v.last().map_or(0, |&last| last.into()),
            KeptOffsets::U64(v) => v.last().copied().unwrap_or(0),
        };
        match (offsets, is_narrow(last)) {
            (KeptOffsets::U32(v), true) => Self::U32(v),
            (KeptOffsets::U64(v), false) => Self::U64(v),
            (KeptOffsets::U32(v), false) => Self::U64(v.iter().map(|&n| n.into()).collect()),
            (KeptOffsets::U64(v), true) => Self::U32(v.iter().map(|&n| n as u32).collect()),
        }
    }

    /// Positions in an array, none of them above `limit`: `u32` when that fits, with what device
    /// code steps past, else `u64`.
    pub(crate) fn positions(limit: u64, positions: impl Iterator<Item = u64>) -> Self {
        if is_narrow(limit) {
            Self::U32(positions.map(|n| n as u32).collect())
        } else {
            Self::U64(positions.collect())
        }
    }
}

/// Whether positions up to `limit` fit in 32 bits, with what device code steps past.
fn is_narrow(limit: u64) -> bool {
    u32::try_from(limit + STEP_PAST).is_ok()
}
