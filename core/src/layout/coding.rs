use alloc::vec::Vec;

use half::{bf16, f16};

use super::array::{Array, ArrayData};
use super::pack::{PackError, PartSource};
use crate::matrix::{Elements, Scalar};
use crate::structure::Table;
use crate::syntax::{IndexCoding, ValueCoding};
use crate::task::Dtype;

/// The entries of a part in storage order, `None` for the empty slots of a padded layout, each with
/// the unit that it belongs to. Cloning it restarts it.
pub(crate) trait Entries<T>:
    Iterator<Item = (u32, Option<(u32, T)>)> + Clone + Send
{
}
impl<T, I: Iterator<Item = (u32, Option<(u32, T)>)> + Clone + Send> Entries<T> for I {}

/// Entries whose number is known, so that there is room for all of them at once.
#[derive(Clone)]
pub(crate) struct Counted<I> {
    pub(crate) entries: I,
    pub(crate) count: usize,
}

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.count = self.count.saturating_sub(1);
        self.entries.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, self.entries.size_hint().1)
    }

    // Nested iterators run several times as fast from within.
    fn fold<B, F: FnMut(B, I::Item) -> B>(self, first: B, of: F) -> B {
        self.entries.fold(first, of)
    }
}

/// Packs column indices: `columns`, and `bases` for relative codings.
pub(crate) fn pack_columns<T: Scalar>(
    coding: IndexCoding,
    units: usize,
    entries: impl Entries<T>,
) -> Result<Vec<Array>, PackError> {
    let column = |(_, entry): (u32, Option<(u32, T)>)| entry.map_or(0, |(column, _)| column);
    let mut widest = 0;
    let mut fits = |n: u32| {
        widest = widest.max(n);
        n
    };
    if !coding.is_relative() {
        let data = match coding {
            IndexCoding::U32 => ArrayData::U32(gather(entries, column)),
            _ => ArrayData::U16(gather(entries, |entry| fits(column(entry)) as u16)),
        };
        check_width(coding, widest)?;
        return Ok(alloc::vec![Array::entries("columns", data)]);
    }
    let mut bases = alloc::vec![u32::MAX; units];
    entries.clone().for_each(|(unit, entry)| {
        if let Some((column, _)) = entry {
            bases[unit as usize] = bases[unit as usize].min(column);
        }
    });
    for base in &mut bases {
        // A unit without entries reads no column, but its base is loaded.
        *base = if *base == u32::MAX { 0 } else { *base };
    }
    let mut distance = |(unit, entry): (u32, Option<(u32, T)>)| {
        fits(entry.map_or(0, |(column, _)| column - bases[unit as usize]))
    };
    let data = match coding {
        IndexCoding::D8 => ArrayData::U8(gather(entries, |entry| distance(entry) as u8)),
        _ => ArrayData::U16(gather(entries, |entry| distance(entry) as u16)),
    };
    check_width(coding, widest)?;
    Ok(alloc::vec![
        Array::entries("columns", data),
        Array::decoding("column_bases", ArrayData::U32(bases.into()))
    ])
}

/// Whether all of the numbers fit, of which `widest` is the largest.
fn check_width(coding: IndexCoding, widest: u32) -> Result<(), PackError> {
    if coding != IndexCoding::U32 && u64::from(widest) > coding.max() {
        return Err(PackError::IndexTooWide { coding, n: widest });
    }
    Ok(())
}

/// Collects what `of` makes of entries.
fn gather<E, U>(entries: impl Iterator<Item = E>, mut of: impl FnMut(E) -> U) -> Elements<U> {
    let mut gathered = Vec::with_capacity(entries.size_hint().0);
    entries.for_each(|entry| gathered.push(of(entry)));
    gathered.into()
}

/// Packs values: `values`, or `codes` and `table`. In a `padded` layout, whose kernel reads empty
/// slots, they hold NaN or the code of a NaN.
fn pack_values<T: Scalar>(
    coding: ValueCoding,
    table: Option<&Table>,
    padded: bool,
    entries: impl Entries<T>,
) -> Result<Vec<Array>, PackError> {
    match (coding, table) {
        (ValueCoding::Plain, _) => {
            let values = entries.map(|(_, entry)| entry.map_or(T::NAN, |(_, value)| value));
            Ok(alloc::vec![Array::entries("values", float_array(values))])
        }
        (ValueCoding::Constant, Some(table)) if table.len() == 1 && !padded => {
            let value = table.bits().iter().map(|&bits| T::from_bits(bits));
            Ok(alloc::vec![Array::decoding("values", float_array(value))])
        }
        (ValueCoding::Constant, _) => Err(PackError::NotConstant),
        (ValueCoding::Dictionary, Some(table)) if !padded || table.has_code_for_padding() => {
            let code = |(_, entry): (u32, Option<(u32, T)>)| match entry {
                // The table holds every value of the matrix.
                Some((_, value)) => {
                    table.bits().binary_search(&value.bits()).unwrap_or_default() as u8
                }
                None if padded => table.len() as u8,
                // Never read.
                None => 0,
            };
            let codes = ArrayData::U8(gather(entries, code));
            let values = table.bits().iter().map(|&bits| T::from_bits(bits));
            let padding = padded.then_some(T::NAN);
            let values = float_array(values.chain(padding));
            Ok(alloc::vec![Array::entries("codes", codes), Array::decoding("table", values)])
        }
        (ValueCoding::Dictionary, _) => Err(PackError::TooManyValues),
    }
}

/// As [`pack_values`], of slots that a layout has filled: NaN where there is no entry, as none is
/// NaN.
pub(crate) fn pack_filled<T: Scalar>(
    coding: ValueCoding,
    table: Option<&Table>,
    padded: bool,
    slots: Vec<T>,
) -> Result<Vec<Array>, PackError> {
    if coding == ValueCoding::Plain {
        let values = ArrayData::of_values(slots.into());
        return Ok(values.map(|values| Array::entries("values", values)).into_iter().collect());
    }
    let entries = slots.iter().map(|&value| {
        let is_entry = !value.to_f64().is_nan();
        // Of these only the values count.
        (0, is_entry.then_some((0, value)))
    });
    pack_values(coding, table, padded, entries)
}

/// Packs columns and values, side by side where there are threads.
pub(crate) fn pack_entries<T: Scalar>(
    (index, units): (IndexCoding, usize),
    (values, table): (ValueCoding, Option<&Table>),
    padded: bool,
    columns: impl Entries<T>,
    entries: impl Entries<T>,
) -> Result<Vec<Array>, PackError> {
    let columns = || pack_columns(index, units, columns);
    let values = || pack_values(values, table, padded, entries);
    #[cfg(feature = "std")]
    let (columns, values) = rayon::join(columns, values);
    #[cfg(not(feature = "std"))]
    let (columns, values) = (columns(), values());
    let mut arrays = columns?;
    arrays.extend(values?);
    Ok(arrays)
}

/// Columns and values of a part that stores those of the whole matrix as they are: they are shared
/// with it.
pub(crate) fn shared_entries<T: Scalar>(
    source: &PartSource<'_, T>,
    index: IndexCoding,
    values: ValueCoding,
) -> Option<[Array; 2]> {
    if (index, values) != (IndexCoding::U32, ValueCoding::Plain) || !source.is_whole() {
        return None;
    }
    let values = ArrayData::of_values(source.matrix.kept_values())?;
    let columns = ArrayData::U32(source.matrix.kept_columns());
    Some([Array::entries("columns", columns), Array::entries("values", values)])
}

/// An array of the scalar's own type.
pub(crate) fn float_array<T: Scalar>(values: impl Iterator<Item = T>) -> ArrayData {
    match T::DTYPE {
        Dtype::F32 => ArrayData::F32(gather(values, |v| v.to_f64() as f32)),
        Dtype::F64 => ArrayData::F64(gather(values, Scalar::to_f64)),
        Dtype::F16 => ArrayData::F16(gather(values, |v| f16::from_bits(v.bits() as u16))),
        Dtype::BF16 => ArrayData::BF16(gather(values, |v| bf16::from_bits(v.bits() as u16))),
    }
}

/// Reads back what [`pack_columns`] and [`pack_values`] wrote.
pub(crate) struct Decoder<'a> {
    columns: Option<&'a ArrayData>,
    bases: Option<&'a ArrayData>,
    values: Option<&'a ArrayData>,
    codes: Option<&'a ArrayData>,
    table: Option<&'a ArrayData>,
    constant: bool,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(values: ValueCoding, arrays: &'a [Array]) -> Self {
        let find = |name| arrays.iter().find(|a| a.name == name).map(|a| &a.data);
        Self {
            columns: find("columns"),
            bases: find("column_bases"),
            values: find("values"),
            codes: find("codes"),
            table: find("table"),
            constant: values == ValueCoding::Constant,
        }
    }

    /// Column of the entry at `slot`.
    pub(crate) fn column(&self, unit: usize, slot: usize) -> Option<u32> {
        let base = match self.bases {
            Some(bases) => bases.unsigned(unit)?,
            None => 0,
        };
        u32::try_from(base + self.columns?.unsigned(slot)?).ok()
    }

    /// Value of the entry at `slot`: NaN when the slot holds no entry.
    pub(crate) fn value<T: Scalar>(&self, slot: usize) -> Option<T> {
        let (array, i) = match self.codes {
            Some(codes) => (self.table?, codes.unsigned(slot)? as usize),
            None => (self.values?, if self.constant { 0 } else { slot }),
        };
        match array {
            ArrayData::F32(v) => v.get(i).map(|&v| T::from_f64(f64::from(v))),
            ArrayData::F64(v) => v.get(i).map(|&v| T::from_f64(v)),
            ArrayData::F16(v) => v.get(i).map(|&v| T::from_f64(v.to_f64())),
            ArrayData::BF16(v) => v.get(i).map(|&v| T::from_f64(v.to_f64())),
            _ => None,
        }
    }
}
