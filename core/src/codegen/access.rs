//! How device code reads elements of arrays: by predicated loads, or several by vector loads.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::dense::WIDEST_LOAD;
use super::lines::MOST_COLUMNS;
use crate::language::{Cache, Part, Program, ValueCoding};
use crate::layout::{ElementType, LayoutModule, each_layout};

/// Where there is an element to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Live<'a> {
    /// At every index.
    Always,
    /// Where an expression holds.
    If(&'a str),
}

impl<'a> Live<'a> {
    /// By the condition that statements of a layout give.
    pub(super) fn of(condition: &'a str) -> Self {
        match condition {
            "true" => Self::Always,
            _ => Self::If(condition),
        }
    }
}

impl fmt::Display for Live<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "true",
            Self::If(condition) => condition,
        })
    }
}

/// An element of an array by a predicated load, where `live`.
pub(super) fn predicated(
    cache: Cache,
    (array, element): (&str, ElementType),
    (index, live): (&str, Live<'_>),
) -> String {
    let how = suffix(cache);
    match element {
        ElementType::F16 | ElementType::BF16 => {
            let bits = format!("u16(load_u16{how}_if({live}, &{array}[{index}].bits))");
            typed(element, &bits)
        }
        _ => format!("load_{}{how}_if({live}, {array} + {index})", element.cuda_type()),
    }
}

/// A word of 32 bits by a predicated load from an address, where `live`.
pub(super) fn predicated_word(cache: Cache, address: &str, live: Live<'_>) -> String {
    format!("load_u32{}_if({live}, {address})", suffix(cache))
}

/// What the names of predicated loads say of caching.
fn suffix(cache: Cache) -> &'static str {
    match cache {
        Cache::Cached => "",
        Cache::Streamed => "_streamed",
    }
}

/// An element of an array, at an index or, without one, the first.
pub(super) fn loaded(load: &str, (array, element): (&str, ElementType), index: &str) -> String {
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
pub(super) fn typed(element: ElementType, bits: &str) -> String {
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

/// Statements that take `count` neighbouring elements of an array at once, from an index on;
/// `decoded` makes of each what is assigned to the elements of `target`.
pub(super) fn at_once(
    load: &str,
    (array, element): (&str, ElementType),
    count: u32,
    (index, target): (&str, &str),
    decoded: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut lines = Vec::new();
    let width = vector_width(count, element);
    let elements: Vec<String> = if width == 1 {
        let at = |n: u32| if n == 0 { index.to_owned() } else { format!("{index} + {n}") };
        (0..count).map(|n| loaded_bits(load, (array, element), &at(n))).collect()
    } else {
        let vector = match element {
            ElementType::F64 => "double",
            ElementType::F32 => "float",
            ElementType::U32 => "uint",
            ElementType::U16 | ElementType::F16 | ElementType::BF16 => "ushort",
            _ => "uchar",
        };
        let ty = format!("{vector}{width}");
        let from = format!("reinterpret_cast<const {ty}*>({array} + {index})");
        let packs: Vec<String> = match count / width {
            1 => {
                lines.push(format!("const {ty} packed_{array} = {load}({from});"));
                alloc::vec![format!("packed_{array}")]
            }
            packs => {
                lines.push(format!("const auto* {array}_at = {from};"));
                (0..packs)
                    .map(|n| {
                        let at = if n == 0 { String::new() } else { format!(" + {n}") };
                        lines.push(format!("const {ty} {array}{n} = {load}({array}_at{at});"));
                        format!("{array}{n}")
                    })
                    .collect()
            }
        };
        let parts = ["x", "y", "z", "w"].iter().take(width as usize);
        packs
            .iter()
            .flat_map(|pack| parts.clone().map(move |part| format!("{pack}.{part}")))
            .collect()
    };
    let each = elements.iter().enumerate();
    let each = each.map(|(n, stored)| format!("{target}[{n}] = {}", decoded(stored)));
    lines.extend(in_lines(each));
    lines
}

/// Assignments as statements, as many in a line as have room beside what they are indented by.
pub(super) fn in_lines(assignments: impl Iterator<Item = String>) -> Vec<String> {
    const MOST_INDENT: usize = 10;
    let mut lines: Vec<String> = Vec::new();
    for assignment in assignments {
        match lines.last_mut() {
            Some(line) if MOST_INDENT + line.len() + 2 + assignment.len() < MOST_COLUMNS => {
                line.push_str(", ");
                line.push_str(&assignment);
            }
            _ => lines.push(assignment),
        }
    }
    lines.iter().map(|line| format!("{line};")).collect()
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
        let from_table = |code: &str| format!("__ldg(table + {code})");
        let codes = ("codes", ElementType::U8);
        let lines = at_once("__ldcs", codes, 2, ("slot", "value[u]"), from_table);
        assert_eq!(
            lines,
            [
                "const uchar2 packed_codes = __ldcs(reinterpret_cast<const uchar2*>(codes + slot));",
                "value[u][0] = __ldg(table + packed_codes.x), \
                 value[u][1] = __ldg(table + packed_codes.y);"
            ]
        );
        let at = ("i", "value");
        let lines = |load, element, count, decoded: &dyn Fn(&str) -> String| {
            at_once(load, ("values", element), count, at, decoded).join("\n")
        };
        let plain = |stored: &str| stored.to_owned();
        let three = lines("__ldg", ElementType::F64, 3, &plain);
        assert!(three.contains("value[0] = __ldg(values + i), value[1] = __ldg(values + i + 1)"));
        let four = lines("__ldg", ElementType::F64, 4, &plain);
        assert!(four.contains("const double2 values1 = __ldg(values_at + 1);"), "{four}");
        assert!(four.contains("value[2] = values1.x, value[3] = values1.y"), "{four}");
        let half = |bits: &str| typed(ElementType::F16, bits);
        let loads = "value[0] = f16{__ldcs(&values[i].bits)}, \
                     value[1] = f16{__ldcs(&values[i + 1].bits)}";
        let three = lines("__ldcs", ElementType::F16, 3, &half);
        assert!(three.contains(loads), "{three}");
        let four = lines("__ldg", ElementType::F16, 4, &half);
        assert!(four.contains("const ushort4 packed_values = __ldg("), "{four}");
        assert!(four.contains("value[3] = f16{packed_values.w}"), "{four}");
    }
}
