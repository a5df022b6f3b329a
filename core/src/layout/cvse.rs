//! CVSE: rows in groups, of which the entries of a column are stored side by side.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_columns, pack_filled};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::structure::{BlockColumns, BlockShape, FOUR, MAX_PADDING, MatrixStats, Order};
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::Task;

/// Rows of a group.
const ROWS_OF_GROUP: [u32; 2] = [2, 4];

/// Column-vector sparse encoding (Chen et al., Efficient Tensor Core-Based GPU Kernels for
/// Structured Sparsity under Reduced Precision, SC 2021): rows in groups, each with the columns
/// that any of its rows has, and for each of these a vector of as many values as there are rows.
/// A group begins at a multiple of four vectors, so that a thread can take four columns by one
/// load.
///
/// A thread loads a row of the input once for all rows of a group, where CSR loads it for each
/// entry. That pays where neighbouring rows share columns, as of finite elements and stencils, and
/// there are many columns. Slots of a vector without an entry hold NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CvseLayout {
    /// Rows of a group: 2 or 4.
    pub(crate) rows: u32,
    /// Coding of column indices; relative codings start anew with each group.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads of a warp that share the vectors of a group, 1–32.
    pub(crate) lanes: u32,
    /// Vectors in flight per thread: 1 or 2, one by one; 4 or 8, loaded by fours.
    pub(crate) unroll: u32,
}

/// The rows of a group whose padding is bearable.
fn groups<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    if site.order != Order::Keep {
        return Vec::new();
    }
    let bearable = |&&rows: &&u32| {
        mask.allows(|stats| {
            let slots = slots_of(stats, site, rows);
            MAX_PADDING.bears(slots, stats.rows(site.rows).nnz)
        })
    };
    let fields = |&rows: &u32| {
        let index = Slot::Index(site, IndexUnit::Rows(rows));
        let values = Slot::Values { padded: true };
        let lanes = Slot::Lanes { most: 32, block: false };
        let fields = vec![index, values, Slot::Cache, Slot::Vector, lanes, Slot::Unroll];
        Alternative::number(rows, fields)
    };
    ROWS_OF_GROUP.iter().filter(bearable).map(fields).collect()
}

/// Slots for entries in groups of so many rows, estimated: of each group's last four vectors, two
/// are taken to be empty.
fn slots_of(stats: &MatrixStats<'_>, site: Site, rows: u32) -> u64 {
    let groups = (stats.rows(site.rows).rows.len() as u64).div_ceil(rows.into());
    let vectors = stats.blocks(site.rows, BlockShape::column(rows));
    (vectors + groups * u64::from(FOUR / 2)) * u64::from(rows)
}

impl CvseLayout {
    /// Rows of a group.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(self.lanes), self.access, block)
    }
}

impl LayoutModule for CvseLayout {
    const WORD: Word = Word::Cvse;
    const FIELDS: &'static [&'static str] =
        &["rows", "index", "values", "cache", "vector", "lanes", "unroll"];
    /// `cvse R …`, for rows in matrix order, where padding is bearable for some `R`: nearly
    /// everywhere for 2, and for 4 where neighbours share some columns.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let any = !groups(site, mask).is_empty();
        any.then(|| vec![field::<Self, L>("rows", site, groups)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.rows), self.index.token()]);
        self.access.write(out);
        out.extend([Token::Number(self.lanes), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let rows = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { rows, index, access, lanes: reader.number()?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), lanes: 1, unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let height = self.rows as usize;
        let groups = rows.div_ceil(height);
        // Columns of each group, ascending, and which of them are its own.
        let (mut list, mut shares) = (Vec::new(), Vec::with_capacity(groups));
        let mut columns = BlockColumns::default();
        for group in 0..groups {
            let positions = group * height..rows.min((group + 1) * height);
            let here = columns.of(positions.map(|p| source.row(p).0), 1);
            shares.push(list.len()..list.len() + here.len());
            list.extend_from_slice(here);
            // The rest of the last four has the last column once more, without an entry.
            if let Some(&last) = list.last() {
                list.resize(list.len().next_multiple_of(FOUR as usize), last);
            }
        }
        let slots = list.len() as u64 * u64::from(self.rows);
        MAX_PADDING.check("cvse", slots, source.nnz())?;

        // NaN where there is no entry, as none is NaN.
        let mut values = vec![T::NAN; slots as usize];
        for position in 0..rows {
            let mut vector = shares[position / height].start;
            let (row_columns, row_values) = source.row(position);
            for (&column, &value) in row_columns.iter().zip(row_values) {
                // Entries and columns of the group both ascend.
                while list[vector] < column {
                    vector += 1;
                }
                values[vector * height + position % height] = value;
            }
        }
        let offsets = ArrayData::offsets_by_fours(shares.iter().map(|share| share.len() as u64));
        let columns = shares.iter().enumerate().flat_map(|(group, share)| {
            let columns = list[share.start..share.end.next_multiple_of(FOUR as usize)].iter();
            columns.map(move |&column| (group as u32, Some((column, T::NAN))))
        });
        let mut arrays = vec![Array::matrix("group_offsets", offsets)];
        let columns = Counted { entries: columns, count: list.len() };
        arrays.extend(pack_columns(self.index, groups, columns)?);
        arrays.extend(pack_filled(self.access.values, source.table, true, values)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let groups = part.rows.len().div_ceil(self.rows as usize);
        Ok(PartLaunch::new(self.mapping(task, block).blocks(groups as u64, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let offsets = part.array("group_offsets")?;
        let height = self.rows as usize;
        for position in 0..part.rows.len() {
            let group = position / height;
            for vector in offsets.slots_by_fours(group)? {
                let slot = vector.checked_mul(height)?.checked_add(position % height)?;
                let value: T = decoder.value(slot)?;
                if !value.to_f64().is_nan() {
                    emit(position, decoder.column(group, vector)?, value);
                }
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "group",
            units: "groups",
            indexed: "vector",
            indices: "vectors",
            values: "vectors x rows of a group",
            empty: ", or NaN",
        };
        match array {
            "group_offsets" => Some(Meaning::new(
                "first vector of each group, a multiple of 4, plus its empty vectors, which are \
                 its last; and the end",
                "groups + 1",
            )),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let code = DeviceCode::Statements(include_str!("../../cuda/cvse.cuh"));
        let shares = Shares::GroupOfRows { lanes: self.lanes, rows: self.rows };
        let call = DeviceCall::new(code, mapping, shares)
            .factor("LANES", self.lanes)
            .factor("STRIDE", mapping.stride)
            .constant("ROWS", self.rows);
        let call = match self.unroll / FOUR {
            0 => call.constant("UNROLL", self.unroll).values_at_once(self.rows),
            fours => {
                let call = call.constant("FOURS", fours).columns_at_once(FOUR);
                call.values_at_once(FOUR * self.rows)
            }
        };
        call.block().size(PartSize::Rows).array("group_offsets").dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let height = u64::from(self.rows);
        let slots = slots_of(stats, site, self.rows);
        let groups = (set.rows.len() as u64).div_ceil(height);
        let bases = if self.index.is_relative() { 4 * groups } else { 0 };
        let value = self.access.values.size(task.precision.matrix()) as u64;
        let vector = self.index.size() as u64 + height * value;
        let bytes = slots / height * vector + 4 * (groups + 1) + bases;
        // Warps are as many fewer as rows share one. A group has the columns of its longest row,
        // and as many more as the others do not share.
        let at_once = if self.unroll < FOUR { 1 } else { FOUR };
        let rows = model.row_steps(site, mapping.lanes, mapping.stride);
        let unshared = slots as f64 / set.nnz.max(1) as f64;
        let steps = WarpSteps {
            warps: rows.warps.div_ceil(height),
            total: (rows.total as f64 * unshared) as u64 / (height * u64::from(at_once)),
            longest: (rows.longest as f64 * unshared.max(1.0)) as u64 / u64::from(at_once),
        };
        let groups_at_once = (32 / (mapping.lanes * mapping.stride)).max(1);
        let vectors_of_step = u64::from(groups_at_once * mapping.lanes * at_once);
        PartCost::new(&mapping, steps, StartUp::Rows)
            .matrix(bytes, (vectors_of_step * vector) as f64 / 32.0)
            .scattered_inputs(&mapping, task, at_once)
            .unroll(self.unroll / at_once)
    }
}
