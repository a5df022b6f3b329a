//! The type of a part in device code: how its threads are mapped, and how it reads its entries.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::access::{Live, at_once, in_lines, loaded, predicated, predicated_word, typed};
use super::lines::{MOST_COLUMNS, write_list};
use super::signature::{PartSignature, RowsForm};
use super::source::EmitError;
use crate::language::{Cache, Part, ValueCoding};
use crate::layout::{ArrayReader, DeviceCall, ElementType, PartSize, part_name};
use crate::task::{Operation, Task};

/// A part of the kernel while it is written.
pub(super) struct PartCall<'a> {
    pub(super) index: usize,
    pub(super) part: &'a Part,
    pub(super) signature: &'a PartSignature,
    pub(super) call: DeviceCall,
}

impl PartCall<'_> {
    /// The error of a signature that is of another program.
    pub(super) fn lacks_array(&self) -> EmitError {
        EmitError::MissingArray { part: self.index, layout: self.part.layout.word().text() }
    }

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
    pub(super) fn read_arrays(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_own = |reader| match reader {
            ArrayReader::Part | ArrayReader::PartByEntries => true,
            ArrayReader::Layout => false,
        };
        let arrays = self.signature.arrays.iter().filter(move |array| is_own(array.reader));
        arrays.map(|array| (array.name, array.element.cuda_type()))
    }

    /// Which threads do what.
    pub(super) fn mapping_in_words(&self, operation: Operation) -> String {
        let DeviceCall { mapping, shares, .. } = &self.call;
        match operation {
            Operation::SpMV => shares.to_string(),
            Operation::SpMM { columns } => {
                let panels = match mapping.panels {
                    1 => String::new(),
                    panels => format!(
                        ", in panels of {} columns, one after the other",
                        columns.get() / panels
                    ),
                };
                format!(
                    "{shares}, times {} side by side over columns, each with {}{panels}",
                    mapping.stride, mapping.vector
                )
            }
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
        let is_relative = self.is_relative();
        if is_relative {
            writeln!(text, "  u32 base = 0;")?;
        }
        if self.signature.element("columns").is_some() {
            if is_relative {
                let body = " base = __ldg(column_bases + unit); return *this; ";
                write_function(text, &format!("{ty}& with_base_of(u32 unit)"), body)?;
            } else {
                write_function(text, &format!("{ty}& with_base_of(u32)"), " return *this; ")?;
            }
        }
        if let Some(column) = self.column("i", Live::If("live")) {
            let column = format!(" return {column}; ");
            write_function(text, "u32 column(size_t i, bool live) const", &column)?;
        }
        let value = format!(" return {}; ", self.value("i", Live::If("live")));
        let index = if access.values == ValueCoding::Constant { "size_t" } else { "size_t i" };
        write_function(text, &format!("Scalar value({index}, bool live) const"), &value)?;
        let row = format!(" return {}; ", self.row("position"));
        write_function(text, "u32 row(u32 position) const", &row)?;
        writeln!(text, "}};\n")
    }

    /// The column index of an entry by a predicated load; `None` where columns are not stored.
    pub(super) fn column(&self, index: &str, live: Live<'_>) -> Option<String> {
        let columns = ("columns", self.signature.element("columns")?);
        let column = predicated(self.part.layout.access().cache, columns, (index, live));
        Some(if self.is_relative() { format!("base + {column}") } else { column })
    }

    /// The value of an entry, likewise.
    pub(super) fn value(&self, index: &str, live: Live<'_>) -> String {
        let access = self.part.layout.access();
        let (values, table) = (self.stored("values"), self.stored("table"));
        match access.values {
            ValueCoding::Plain => predicated(access.cache, values, (index, live)),
            ValueCoding::Constant => {
                let constant = loaded("__ldg", values, "");
                match live {
                    Live::Always => constant,
                    Live::If(condition) => format!("{condition} ? Scalar({constant}) : 0"),
                }
            }
            ValueCoding::Dictionary => {
                let code = predicated(access.cache, self.stored("codes"), (index, live));
                predicated(Cache::Cached, table, (&code, live))
            }
        }
    }

    /// Two neighbouring values in half precision, the first of which lies at an even index, as a
    /// word.
    pub(super) fn value_pair(&self, index: &str, live: Live<'_>) -> String {
        let access = self.part.layout.access();
        match access.values {
            ValueCoding::Plain => {
                let words = format!("reinterpret_cast<const u32*>(values + {index})");
                predicated_word(access.cache, &words, live)
            }
            ValueCoding::Constant | ValueCoding::Dictionary => {
                let [first, second] =
                    [index, &format!("{index} + 1")].map(|index| self.value(index, live));
                format!("pair_of({first}, {second})")
            }
        }
    }

    /// Statements that take neighbouring column indices at once.
    pub(super) fn columns_at(&self, index: &str, target: &str) -> Vec<String> {
        let base = if self.is_relative() { "base + " } else { "" };
        let count = self.call.columns_at_once.unwrap_or(1);
        let decoded = |stored: &str| format!("{base}{stored}");
        at_once(self.load(), self.stored("columns"), count, (index, target), decoded)
    }

    /// Statements that take neighbouring values at once.
    pub(super) fn values_at(&self, index: &str, target: &str) -> Vec<String> {
        let count = self.call.values_at_once.unwrap_or(1);
        let (values, table) = (self.stored("values"), self.stored("table"));
        match self.part.layout.access().values {
            ValueCoding::Plain => {
                let decoded = |stored: &str| typed(values.1, stored);
                at_once(self.load(), values, count, (index, target), decoded)
            }
            ValueCoding::Dictionary => {
                let decoded = |code: &str| loaded("__ldg", table, code);
                at_once(self.load(), self.stored("codes"), count, (index, target), decoded)
            }
            ValueCoding::Constant => {
                let constant = loaded("__ldg", values, "");
                in_lines((0..count).map(|n| format!("{target}[{n}] = {constant}")))
            }
        }
    }

    /// The row at a position.
    pub(super) fn row(&self, position: &str) -> String {
        match self.signature.rows {
            RowsForm::All => position.into(),
            RowsForm::Range => format!("{} + {position}", PartSize::FirstRow.name()),
            RowsForm::List => format!("__ldg(rows + {position})"),
        }
    }

    /// Whether columns are counted from bases.
    pub(super) fn is_relative(&self) -> bool {
        self.signature.element("column_bases").is_some()
    }

    /// An array with the type of its elements.
    fn stored(&self, array: &'static str) -> (&'static str, ElementType) {
        (array, self.signature.element(array).unwrap_or(ElementType::U8))
    }

    /// How arrays of the matrix are loaded where nothing depends on a condition.
    fn load(&self) -> &'static str {
        match self.part.layout.access().cache {
            Cache::Cached => "__ldg",
            // The matrix is read once, or once a panel, so it is the first to leave the caches.
            Cache::Streamed => "__ldcs",
        }
    }
}

/// Writes a function of a part, on one line where it has room.
fn write_function(text: &mut String, declaration: &str, body: &str) -> fmt::Result {
    let line = format!("  __device__ {declaration} {{{body}}}");
    if line.len() <= MOST_COLUMNS {
        return writeln!(text, "{line}");
    }
    writeln!(text, "  __device__ {declaration} {{\n    {}\n  }}", body.trim())
}
