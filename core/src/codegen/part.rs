//! The type of a part in device code: how its threads are mapped, and how it reads its entries.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::dense::WIDEST_LOAD;
use super::lines::{MOST_COLUMNS, write_list, write_words};
use super::signature::{PartSignature, RowsForm};
use super::source::EmitError;
use crate::language::{Cache, Part, Program, ValueCoding};
use crate::layout::{
    ArrayReader, DeviceCall, ElementType, LayoutModule, PartSize, each_layout, part_name,
};
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
        let load = match access.cache {
            Cache::Cached => "__ldg",
            // The matrix is read once, or once a panel, so it is the first to leave the caches.
            Cache::Streamed => "__ldcs",
        };
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
        if let Some(columns) = self.signature.element("columns") {
            if is_relative {
                let body = " base = __ldg(column_bases + unit); return *this; ";
                write_function(text, &format!("{ty}& with_base_of(u32 unit)"), body)?;
            } else {
                write_function(text, &format!("{ty}& with_base_of(u32)"), " return *this; ")?;
            }
            let base = if is_relative { "base + " } else { "" };
            match self.call.columns_at_once {
                Some(count) => {
                    let decoded = |stored: &str| format!("{base}{stored}");
                    let function = AtOnce { function: "columns_at", ty: "u32", element: "column" };
                    function.write(text, load, ("columns", columns), count, decoded)?;
                }
                None => {
                    let column = predicated(access.cache, ("columns", columns), "i");
                    let column = format!(" return {base}{column}; ");
                    write_function(text, "u32 column(size_t i, bool live) const", &column)?;
                }
            }
        }
        let values_at = AtOnce { function: "values_at", ty: "Scalar", element: "value" };
        let stored = |array| (array, self.signature.element(array).unwrap_or(ElementType::U8));
        let (values, table) = (stored("values"), stored("table"));
        match (self.call.values_at_once, access.values) {
            (Some(count), ValueCoding::Plain) => {
                let decoded = |stored: &str| typed(values.1, stored);
                values_at.write(text, load, values, count, decoded)?;
            }
            (Some(count), ValueCoding::Dictionary) => {
                let decoded = |code: &str| loaded("__ldg", table, code);
                values_at.write(text, load, stored("codes"), count, decoded)?;
            }
            (Some(count), ValueCoding::Constant) => {
                let constant = loaded("__ldg", values, "");
                let each: Vec<String> =
                    (0..count).map(|n| format!("value[{n}] = {constant}")).collect();
                writeln!(
                    text,
                    "  __device__ void values_at(size_t, Scalar (&value)[{count}]) const {{"
                )?;
                write_list(text, "    ", &each, ";")?;
                writeln!(text, "  }}")?;
            }
            (None, ValueCoding::Plain) => {
                let value = format!(" return {}; ", predicated(access.cache, values, "i"));
                write_function(text, "Scalar value(size_t i, bool live) const", &value)?;
            }
            (None, ValueCoding::Constant) => {
                let value = loaded("__ldg", values, "");
                let value = format!(" return live ? Scalar({value}) : 0; ");
                write_function(text, "Scalar value(size_t, bool live) const", &value)?;
            }
            (None, ValueCoding::Dictionary) => {
                let code = predicated(access.cache, stored("codes"), "i");
                let value = format!(" return {}; ", predicated(Cache::Cached, table, &code));
                write_function(text, "Scalar value(size_t i, bool live) const", &value)?;
            }
        }
        let row = match rows {
            RowsForm::All => " return position; ",
            RowsForm::Range => " return first_row + position; ",
            RowsForm::List => " return __ldg(rows + position); ",
        };
        write_function(text, "u32 row(u32 position) const", row)?;
        writeln!(text, "}};\n")
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

/// An element of an array by a predicated load, where `live`.
fn predicated(cache: Cache, (array, element): (&str, ElementType), index: &str) -> String {
    let how = match cache {
        Cache::Cached => "",
        Cache::Streamed => "_streamed",
    };
    match element {
        ElementType::F16 | ElementType::BF16 => {
            let bits = format!("u16(load_u16{how}_if(live, &{array}[{index}].bits))");
            typed(element, &bits)
        }
        _ => format!("load_{}{how}_if(live, {array} + {index})", element.cuda_type()),
    }
}

/// An element of an array, at an index or, without one, the first.
fn loaded(load: &str, (array, element): (&str, ElementType), index: &str) -> String {
    let bits = loaded_bits(load, (array, element), index);
    typed(element, &bits)
}

/// The same as it lies in memory: loads with a hint take no types of ours.
fn loaded_bits(load: &str, (array, element): (&str, ElementType), index: &str) -> String {
    match (element, index) {
        (ElementType::F16 | ElementType::BF16, "") => format!("{load}(&{array}->bits)"),
        (ElementType::F16 | ElementType::BF16, _) => format!("{load}(&{array}[{index}].bits)"),
        (_, "") => format!("{load}({array})"),
        _ => format!("{load}({array} + {index})"),
    }
}

/// An element, given as it lies in memory.
fn typed(element: ElementType, bits: &str) -> String {
    match element {
        ElementType::F16 | ElementType::BF16 => format!("{}{{{bits}}}", element.cuda_type()),
        _ => bits.to_owned(),
    }
}

/// Whether a kernel reads arrays of the matrix by vector loads, for which they are to be aligned.
pub(crate) fn loads_vectors(program: &Program) -> bool {
    let loads = |part: &&Part| {
        let call = each_layout!(&part.layout, layout => {
            layout.call(program.task, program.block.threads())
        });
        let element = match part.layout.access().values {
            ValueCoding::Dictionary => ElementType::U8,
            ValueCoding::Plain | ValueCoding::Constant => program.task.precision.matrix().into(),
        };
        call.columns_at_once.is_some()
            || call.values_at_once.is_some_and(|count| vector_width(count, element) > 1)
    };
    program.parts().iter().any(loads)
}

/// Elements of the widest vectors of CUDA that so many neighbouring elements divide into.
fn vector_width(count: u32, element: ElementType) -> u32 {
    let fits = |width: &u32| count.is_multiple_of(*width) && is_loaded_at_once(*width, element);
    [4, 2].into_iter().find(fits).unwrap_or(1)
}

fn is_loaded_at_once(width: u32, element: ElementType) -> bool {
    width as usize * element.size() <= WIDEST_LOAD
}

/// A function of a part that takes several neighbouring elements at once.
struct AtOnce {
    function: &'static str,
    /// Type of what it gives.
    ty: &'static str,
    /// Name of what it gives.
    element: &'static str,
}

impl AtOnce {
    /// Writes the function, for `count` elements of an array; `decoded` makes of each what is
    /// given.
    fn write(
        &self,
        text: &mut String,
        load: &str,
        (array, element): (&str, ElementType),
        count: u32,
        decoded: impl Fn(&str) -> String,
    ) -> fmt::Result {
        let Self { function, ty, element: name } = self;
        let width = vector_width(count, element);
        writeln!(text, "  __device__ void {function}(size_t i, {ty} (&{name})[{count}]) const {{")?;
        let elements: Vec<String> = if width == 1 {
            let index = |n: u32| if n == 0 { "i".to_owned() } else { format!("i + {n}") };
            (0..count).map(|n| loaded_bits(load, (array, element), &index(n))).collect()
        } else {
            let vector = match element {
                ElementType::F64 => "double",
                ElementType::F32 => "float",
                ElementType::U32 => "uint",
                ElementType::U16 | ElementType::F16 | ElementType::BF16 => "ushort",
                _ => "uchar",
            };
            let ty = format!("{vector}{width}");
            writeln!(text, "    const auto* at = reinterpret_cast<const {ty}*>({array} + i);")?;
            let at = |n: u32| match n {
                0 => format!("{load}(at)"),
                _ => format!("{load}(at + {n})"),
            };
            let packs: Vec<String> =
                (0..count / width).map(|n| format!("pack{n} = {}", at(n))).collect();
            write_list(text, &format!("    const {ty} "), &packs, ";")?;
            let parts = ["x", "y", "z", "w"].iter().take(width as usize);
            (0..count / width)
                .flat_map(|n| parts.clone().map(move |part| format!("pack{n}.{part}")))
                .collect()
        };
        let each = elements.iter().enumerate();
        let each = each.map(|(n, stored)| format!("{name}[{n}] = {}", decoded(stored)));
        write_list(text, "    ", &each.collect::<Vec<_>>(), ";")?;
        writeln!(text, "  }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_as_wide_as_divides_the_values_and_fits_a_load() {
        let widths = |element| [1, 2, 3, 4, 6, 8].map(|count| vector_width(count, element));
        assert_eq!(widths(ElementType::F32), [1, 2, 1, 4, 2, 4]);
        assert_eq!(widths(ElementType::U8), [1, 2, 1, 4, 2, 4]);
        assert_eq!(widths(ElementType::F64), [1, 2, 1, 2, 2, 2]);
        assert_eq!(widths(ElementType::BF16), [1, 2, 1, 4, 2, 4]);
    }

    #[test]
    fn each_value_is_of_one_load() {
        let mut text = String::new();
        let function = AtOnce { function: "values_at", ty: "Scalar", element: "value" };
        let from_table = |code: &str| format!("__ldg(table + {code})");
        function.write(&mut text, "__ldcs", ("codes", ElementType::U8), 2, from_table).unwrap();
        let expected = "  __device__ void values_at(size_t i, Scalar (&value)[2]) const {
    const auto* at = reinterpret_cast<const uchar2*>(codes + i);
    const uchar2 pack0 = __ldcs(at);
    value[0] = __ldg(table + pack0.x), value[1] = __ldg(table + pack0.y);
  }
";
        assert_eq!(text, expected);
        text.clear();
        let plain = ToString::to_string;
        function.write(&mut text, "__ldg", ("values", ElementType::F64), 3, plain).unwrap();
        assert!(text.contains("value[0] = __ldg(values + i), value[1] = __ldg(values + i + 1)"));
        text.clear();
        let half = |bits: &str| typed(ElementType::F16, bits);
        function.write(&mut text, "__ldcs", ("values", ElementType::F16), 3, half).unwrap();
        let loads = "value[0] = f16{__ldcs(&values[i].bits)}, \
                     value[1] = f16{__ldcs(&values[i + 1].bits)}";
        assert!(text.contains(loads), "{text}");
        text.clear();
        function.write(&mut text, "__ldg", ("values", ElementType::F16), 4, half).unwrap();
        assert!(text.contains("const ushort4 pack0 = __ldg(at);"), "{text}");
        assert!(text.contains("value[3] = f16{pack0.w}"), "{text}");
    }
}
