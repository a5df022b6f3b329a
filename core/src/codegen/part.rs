//! The type of a part in device code: how its threads are mapped, and how it reads its entries.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::header::write_words;
use super::signature::RowsForm;
use super::source::{PartCall, write_list};
use crate::language::{Access, Cache, ValueCoding};
use crate::layout::{ArrayReader, DeviceCall, PartSize, part_name};
use crate::task::{Operation, Task};

impl PartCall<'_> {
    /// Name of the type.
    pub(super) fn type_name(&self, parts: usize) -> String {
        if parts == 1 { "Matrix".into() } else { format!("Part{}", self.index) }
    }

    /// The kernel's parameters that a value of the type is made of, in the order of its members.
    pub(super) fn members(&self, parts: usize) -> Vec<String> {
        let name = |what: &str| part_name(parts, self.index, what);
        let mut members: Vec<String> = self.read_arrays().map(|(array, _)| name(array)).collect();
        if self.signature.rows == RowsForm::Range {
            members.push(name(PartSize::FirstRow.name()));
        }
        members
    }

    /// Names and types of the arrays that it reads itself.
    fn read_arrays(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_own = |reader| match reader {
            ArrayReader::Part | ArrayReader::PartByEntries => true,
            ArrayReader::Layout => false,
        };
        let arrays = self.signature.arrays.iter().filter(move |array| is_own(array.reader));
        arrays.map(|array| (array.name, array.element.cuda_type()))
    }

    /// Which threads do what.
    fn mapping_in_words(&self, operation: Operation) -> String {
        let DeviceCall { mapping, shares, .. } = &self.call;
        match operation {
            Operation::SpMV => shares.to_string(),
            Operation::SpMM { .. } => format!(
                "{shares}, times {} side by side over columns, each with {}",
                mapping.stride, mapping.vector
            ),
        }
    }

    /// Writes the type, whose functions say what the program's codings mean.
    pub(super) fn write_type(&self, text: &mut String, task: Task, parts: usize) -> fmt::Result {
        let access = self.part.layout.access();
        let sum = match task.operation {
            Operation::SpMV => "Scalar".into(),
            Operation::SpMM { .. } => format!("Pack<{}>", self.call.mapping.vector),
        };
        let constants: Vec<String> =
            self.call.constants.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let rows = self.signature.rows;
        let words = self.mapping_in_words(task.operation);
        write_words(text, "// ", &format!("Mapping: {words}. Its arrays, and how they are read:"))?;
        let ty = self.type_name(parts);
        writeln!(text, "struct {ty} {{")?;
        writeln!(text, "  using Sum = {sum};")?;
        if !constants.is_empty() {
            write_list(text, "  static constexpr u32 ", &constants, ";")?;
        }
        for (array, element) in self.read_arrays() {
            writeln!(text, "  const {element}* {array};")?;
        }
        if rows == RowsForm::Range {
            writeln!(text, "  u32 {};", PartSize::FirstRow.name())?;
        }
        let is_relative = self.signature.element("column_bases").is_some();
        if is_relative {
            writeln!(text, "  u32 base = 0;")?;
        }
        if is_relative {
            writeln!(
                text,
                "  __device__ {ty}& with_base_of(u32 unit) {{ base = __ldg(column_bases + unit); \
                 return *this; }}"
            )?;
        } else if self.signature.element("columns").is_some() {
            writeln!(text, "  __device__ {ty}& with_base_of(u32) {{ return *this; }}")?;
        }
        if self.call.by_fours {
            self.write_fours(text, access, is_relative)?;
        } else {
            self.write_elements(text, access, is_relative)?;
        }
        let row = match rows {
            RowsForm::All => " return position; ",
            RowsForm::Range => " return first_row + position; ",
            RowsForm::List => " return __ldg(rows + position); ",
        };
        writeln!(text, "  __device__ u32 row(u32 position) const {{{row}}}")?;
        writeln!(text, "}};\n")
    }

    /// Writes the functions that read one column or value.
    fn write_elements(&self, text: &mut String, access: Access, is_relative: bool) -> fmt::Result {
        let load = match access.cache {
            Cache::Cached => "__ldg",
            // The matrix is read once, so it is the first to leave the caches.
            Cache::Streamed => "__ldcs",
        };
        if self.signature.element("columns").is_some() {
            let base = if is_relative { "base + " } else { "" };
            let column = format!("{base}{load}(columns + i)");
            writeln!(text, "  __device__ u32 column(size_t i) const {{ return {column}; }}")?;
        }
        let (value, i) = match access.values {
            ValueCoding::Plain => (format!("{load}(values + i)"), " i"),
            ValueCoding::Constant => ("__ldg(values)".into(), ""),
            ValueCoding::Dictionary => (format!("__ldg(table + {load}(codes + i))"), " i"),
        };
        writeln!(text, "  __device__ Scalar value(size_t{i}) const {{ return {value}; }}")
    }

    /// Writes the functions that read four columns or values at once.
    fn write_fours(&self, text: &mut String, access: Access, is_relative: bool) -> fmt::Result {
        let streams = access.cache == Cache::Streamed;
        writeln!(text, "  __device__ void columns_from(size_t i, u32 (&column)[4]) const {{")?;
        writeln!(text, "    load_four<{streams}>(columns + i, column);")?;
        if is_relative {
            writeln!(text, "    for (u32 j = 0; j < 4; ++j) column[j] += base;")?;
        }
        writeln!(text, "  }}")?;
        // A value of all entries has no place of its own.
        let i = if access.values == ValueCoding::Constant { "" } else { " i" };
        writeln!(text, "  __device__ void values_from(size_t{i}, Scalar (&value)[4]) const {{")?;
        match access.values {
            ValueCoding::Plain => writeln!(text, "    load_four<{streams}>(values + i, value);")?,
            ValueCoding::Constant => {
                writeln!(text, "    for (u32 j = 0; j < 4; ++j) value[j] = __ldg(values);")?;
            }
            ValueCoding::Dictionary => {
                writeln!(text, "    u32 code[4];")?;
                writeln!(text, "    load_four<{streams}>(codes + i, code);")?;
                writeln!(text, "    for (u32 j = 0; j < 4; ++j) value[j] = __ldg(table + code[j]);")?;
            }
        }
        writeln!(text, "  }}")
    }
}
