//! Rust values as columns of Parquet.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use parquet::column::reader::get_column_reader;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;

use super::pages::CheckedPages;

/// What one row holds in one column: a value, perhaps a value, or perhaps a list of values.
pub(super) trait Cell: Sized {
    type Value: Value;

    /// Definition and repetition levels above 0 that the column has.
    const LEVELS: (i16, i16);

    /// The column's line in the schema.
    fn field(name: &str) -> String;
    fn put(&self, column: &mut Column<Stored<Self>>);
    /// The next one; absent when the column ends or its levels or values make no sense.
    fn take(column: &mut ColumnIter<Stored<Self>>) -> Option<Self>;
}

/// A value that is no list and never null.
pub(super) trait Value: Sized {
    type Physical: DataType;

    /// Parquet's names of the physical and of the logical type.
    const TYPE: (&'static str, &'static str);

    fn store(&self) -> <Self::Physical as DataType>::T;
    fn load(stored: <Self::Physical as DataType>::T) -> Option<Self>;
}

type Physical<C> = <<C as Cell>::Value as Value>::Physical;
type Stored<C> = <Physical<C> as DataType>::T;

/// Dremel's representation: the values that are there, and the levels that say where.
pub(super) struct Column<V> {
    values: Vec<V>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<V> Column<V> {
    fn new() -> Self {
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() }
    }
}

pub(super) struct ColumnIter<V> {
    values: IntoIter<V>,
    definitions: IntoIter<i16>,
    repetitions: Peekable<IntoIter<i16>>,
}

pub(super) fn write<'a, C: Cell + 'a, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = &'a C>,
) -> Result<()> {
    let mut column = Column::new();
    for cell in cells {
        cell.put(&mut column);
    }
    let Column { values, definitions, repetitions } = column;
    let too_many = || ParquetError::General("more cells than columns".into());
    let mut writer = group.next_column()?.ok_or_else(too_many)?;
    let (defined, repeated) = C::LEVELS;
    writer.typed::<Physical<C>>().write_batch(
        &values,
        (defined > 0).then_some(&definitions),
        (repeated > 0).then_some(&repetitions),
    )?;
    writer.close()
}

/// Column `index` of a group of rows.
pub(super) fn read<C: Cell>(group: &dyn RowGroupReader, index: usize) -> Result<Vec<C>> {
    let broken = || ParquetError::General(format!("column {index} is inconsistent"));
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| broken())?;
    let description = group.metadata().schema_descr().columns().get(index).ok_or_else(broken)?;
    let pages = CheckedPages(group.get_column_page_reader(index)?);
    let reader = get_column_reader(Arc::clone(description), Box::new(pages));
    let mut reader = Physical::<C>::get_column_reader(reader).ok_or_else(broken)?;
    let Column { mut values, mut definitions, mut repetitions } = Column::new();
    let mut read = 0;
    while read < rows {
        let levels = (Some(&mut definitions), Some(&mut repetitions));
        match reader.read_records(rows - read, levels.0, levels.1, &mut values)? {
            (0, ..) => return Err(broken()),
            (records, ..) => read += records,
        }
    }
    let mut column = ColumnIter {
        values: values.into_iter(),
        definitions: definitions.into_iter(),
        repetitions: repetitions.into_iter().peekable(),
    };
    (0..rows).map(|_| C::take(&mut column).ok_or_else(broken)).collect()
}

impl<V: Value> Cell for V {
    type Value = V;
    const LEVELS: (i16, i16) = (0, 0);

    fn field(name: &str) -> String {
        let (physical, logical) = V::TYPE;
        format!("required {physical} {name} {logical};\n")
    }

    fn put(&self, column: &mut Column<Stored<Self>>) {
        column.values.push(self.store());
    }

    fn take(column: &mut ColumnIter<Stored<Self>>) -> Option<Self> {
        V::load(column.values.next()?)
    }
}

impl<V: Value> Cell for Option<V> {
    type Value = V;
    const LEVELS: (i16, i16) = (1, 0);

    fn field(name: &str) -> String {
        let (physical, logical) = V::TYPE;
        format!("optional {physical} {name} {logical};\n")
    }

    fn put(&self, column: &mut Column<Stored<Self>>) {
        column.definitions.push(self.is_some().into());
        column.values.extend(self.as_ref().map(V::store));
    }

    fn take(column: &mut ColumnIter<Stored<Self>>) -> Option<Self> {
        match column.definitions.next()? {
            0 => Some(None),
            _ => V::load(column.values.next()?).map(Some),
        }
    }
}

impl<V: Value> Cell for Option<Vec<V>> {
    type Value = V;
    const LEVELS: (i16, i16) = (2, 1);

    fn field(name: &str) -> String {
        let (physical, logical) = V::TYPE;
        let element = format!("required {physical} element {logical};");
        format!("optional group {name} (LIST) {{ repeated group list {{ {element} }} }}\n")
    }

    fn put(&self, column: &mut Column<Stored<Self>>) {
        let values = self.as_deref().unwrap_or(&[]);
        if values.is_empty() {
            column.definitions.push(self.is_some().into());
            column.repetitions.push(0);
        }
        for (i, value) in values.iter().enumerate() {
            column.definitions.push(2);
            column.repetitions.push((i > 0).into());
            column.values.push(value.store());
        }
    }

    fn take(column: &mut ColumnIter<Stored<Self>>) -> Option<Self> {
        column.repetitions.next_if_eq(&0)?;
        match column.definitions.next()? {
            0 => return Some(None),
            1 => return Some(Some(Vec::new())),
            _ => {}
        }
        let mut values = vec![V::load(column.values.next()?)?];
        while column.repetitions.next_if_eq(&1).is_some() {
            column.definitions.next()?;
            values.push(V::load(column.values.next()?)?);
        }
        Some(Some(values))
    }
}

impl Value for String {
    type Physical = ByteArrayType;
    const TYPE: (&'static str, &'static str) = ("binary", "(STRING)");

    fn store(&self) -> ByteArray {
        self.as_str().into()
    }
    fn load(stored: ByteArray) -> Option<Self> {
        Self::from_utf8(stored.data().to_vec()).ok()
    }
}

impl Value for f64 {
    type Physical = DoubleType;
    const TYPE: (&'static str, &'static str) = ("double", "");

    fn store(&self) -> f64 {
        *self
    }
    fn load(stored: f64) -> Option<Self> {
        Some(stored)
    }
}

impl Value for bool {
    type Physical = BoolType;
    const TYPE: (&'static str, &'static str) = ("boolean", "");

    fn store(&self) -> bool {
        *self
    }
    fn load(stored: bool) -> Option<Self> {
        Some(stored)
    }
}

impl Value for u32 {
    type Physical = Int32Type;
    const TYPE: (&'static str, &'static str) = ("int32", "(INTEGER(32,false))");

    fn store(&self) -> i32 {
        self.cast_signed()
    }
    fn load(stored: i32) -> Option<Self> {
        Some(stored.cast_unsigned())
    }
}

impl Value for u64 {
    type Physical = Int64Type;
    const TYPE: (&'static str, &'static str) = ("int64", "(INTEGER(64,false))");

    fn store(&self) -> i64 {
        self.cast_signed()
    }
    fn load(stored: i64) -> Option<Self> {
        Some(stored.cast_unsigned())
    }
}

/// A moment, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Microseconds(pub(super) i64);

impl Value for Microseconds {
    type Physical = Int64Type;
    const TYPE: (&'static str, &'static str) = ("int64", "(TIMESTAMP(MICROS,true))");

    fn store(&self) -> i64 {
        self.0
    }
    fn load(stored: i64) -> Option<Self> {
        Some(Self(stored))
    }
}
