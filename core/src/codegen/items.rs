//! The device library, `core/cuda/*.cuh`, by its definitions: a source holds those that it uses.

use alloc::string::String;
use alloc::vec::Vec;

use crate::layout::Layout;
use crate::task::{Operation, Task};

/// What the layouts share, each file after those that it uses. What differs between SpMV and SpMM,
/// or where results are rounded to half precision, is in a file for each.
const SHARED: [(&str, &[Dense]); 11] = [
    (include_str!("../../cuda/types.cuh"), &Dense::ALL),
    (include_str!("../../cuda/half.cuh"), &Dense::ALL),
    (include_str!("../../cuda/prefetch.cuh"), &Dense::ALL),
    (include_str!("../../cuda/output.cuh"), &[Dense::Vectors]),
    (include_str!("../../cuda/output_apart.cuh"), &[Dense::ApartVectors]),
    (include_str!("../../cuda/output_fused.cuh"), &[Dense::FusedVectors]),
    (include_str!("../../cuda/output_half.cuh"), &[Dense::HalfVectors]),
    (
        include_str!("../../cuda/spmv.cuh"),
        &[Dense::Vectors, Dense::ApartVectors, Dense::FusedVectors, Dense::HalfVectors],
    ),
    (include_str!("../../cuda/matrices.cuh"), &[Dense::Matrices]),
    (include_str!("../../cuda/matrices_half.cuh"), &[Dense::HalfMatrices]),
    (include_str!("../../cuda/spmm.cuh"), &[Dense::Matrices, Dense::HalfMatrices]),
];

/// The library's name for the type of the dense operands in memory.
const DENSE: &str = "Dense";

/// All files with what they are for: what is shared, then each layout's own.
fn files() -> impl Iterator<Item = (&'static str, &'static [Dense])> {
    let own = Layout::DEVICE_CODE.iter().copied().flatten();
    SHARED.into_iter().chain(own.map(|text| (*text, &Dense::ALL[..])))
}

/// What the dense operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dense {
    /// x and y, of SpMV.
    Vectors,
    /// x, y and z, of SpMV whose result may lie elsewhere.
    ApartVectors,
    /// The same, with an epilogue.
    FusedVectors,
    /// B and C, of SpMM.
    Matrices,
    /// x and y, in half precision.
    HalfVectors,
    /// B and C, in half precision.
    HalfMatrices,
}

impl Dense {
    const ALL: [Self; 6] = [
        Self::Vectors,
        Self::ApartVectors,
        Self::FusedVectors,
        Self::Matrices,
        Self::HalfVectors,
        Self::HalfMatrices,
    ];

    /// Those of a task whose result is stored as usual.
    pub(super) fn of(task: Task) -> Self {
        match (task.operation, task.precision.rounds_results()) {
            (Operation::SpMV, false) => Self::Vectors,
            (Operation::SpMV, true) => Self::HalfVectors,
            (Operation::SpMM { .. }, false) => Self::Matrices,
            (Operation::SpMM { .. }, true) => Self::HalfMatrices,
        }
    }
}

/// A definition at the top level of the library, with the comment before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    name: &'static str,
    pub(super) lines: Vec<&'static str>,
}

impl Item {
    /// The lines with the type of the dense operands by this name.
    pub(super) fn lines_in<'n>(&'n self, dense_type: &'n str) -> impl Iterator<Item = String> + 'n {
        self.lines.iter().map(move |line| line.replace(DENSE, dense_type))
    }
}

/// The definitions that `code` uses, and all that those use, each after what it uses.
pub(super) fn used_by(code: &str, dense: Dense) -> Vec<Item> {
    let mut items: Vec<Item> =
        files().filter(|(_, of)| of.contains(&dense)).flat_map(|(text, _)| split(text)).collect();
    let mut is_used = alloc::vec![false; items.len()];
    let mut open: Vec<&str> = identifiers(code).collect();
    while let Some(name) = open.pop() {
        if let Some(index) = items.iter().position(|item| item.name == name)
            && !core::mem::replace(&mut is_used[index], true)
        {
            open.extend(items[index].lines.iter().copied().flat_map(identifiers));
        }
    }
    let mut is_used = is_used.into_iter();
    items.retain(|_| is_used.next() == Some(true));
    items
}

/// The definitions of a file. One ends with a line outside of all brackets that ends in `;` or `}`.
fn split(text: &'static str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut depth = 0;
    let is_directive =
        |line: &&str| line.starts_with("#pragma once") || line.starts_with("#include");
    for line in text.lines().filter(|line| !is_directive(line)) {
        if lines.is_empty() && line.is_empty() {
            continue;
        }
        lines.push(line);
        let code = without_comment(line);
        depth += code.matches(['{', '(']).count();
        depth -= code.matches(['}', ')']).count().min(depth);
        if depth == 0 && code.trim_end().ends_with([';', '}']) {
            let name = name(&lines).unwrap_or_default();
            items.push(Item { name, lines: core::mem::take(&mut lines) });
        }
    }
    items
}

/// What a definition defines: an alias, a constant, a type or a function.
fn name(lines: &[&'static str]) -> Option<&'static str> {
    let code = |line: &&&'static str| {
        !line.is_empty()
            && !line.starts_with("//")
            && !line.starts_with("template")
            && !line.starts_with(' ')
    };
    let line = *lines.iter().find(code)?;
    let declarator = line.split(" = ").next()?;
    let declarator = match declarator.find('(') {
        // Of `struct alignas(n) Name {` the name comes after the parenthesis.
        Some(at) if !declarator.starts_with("struct") => &declarator[..at],
        _ => declarator.trim_end_matches(" {"),
    };
    declarator.rsplit(' ').next()
}

fn without_comment(line: &'static str) -> &'static str {
    line.split("//").next().unwrap_or(line)
}

/// The identifiers of a text, keywords among them, without those of its comments.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_split_into_definitions_with_their_names() {
        for (text, _) in files() {
            let items = split(text);
            let kept: usize = items.iter().map(|item| item.lines.len()).sum();
            let written = text
                .lines()
                .filter(|line| !line.starts_with('#') || line.starts_with("#pragma unroll"));
            let blank_between = text.lines().filter(|line| line.is_empty()).count();
            assert!(kept <= written.clone().count() && kept + blank_between >= written.count());
            for item in &items {
                assert!(
                    item.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                    "{item:?}"
                );
                assert!(!item.name.is_empty(), "{item:?}");
                let opening = item.lines.iter().filter(|line| {
                    ["struct ", "using ", "constexpr ", "__device__ "]
                        .iter()
                        .any(|w| line.starts_with(w))
                });
                assert_eq!(opening.count(), 1, "one definition: {item:?}");
            }
        }
    }

    #[test]
    fn definitions_come_after_what_they_use_and_once() {
        for dense in Dense::ALL {
            let all = "csr_lanes csr_block sell dia_rows dia_columns bcsr_rows bcsr_columns \
                       merge_rows merge_scan merge_columns chunk prefetch f16 bf16";
            let items = used_by(all, dense);
            for (index, item) in items.iter().enumerate() {
                let names = items.iter().filter(|other| other.name == item.name).count();
                assert_eq!(names, 1, "{}", item.name);
                for word in item.lines.iter().copied().flat_map(identifiers) {
                    let defined = items.iter().position(|other| other.name == word);
                    // Templates find operations on their sums when they are used.
                    assert!(defined.is_none_or(|at| at <= index), "{} before {word}", item.name);
                }
            }
        }
    }

    #[test]
    fn only_what_is_used_is_taken() {
        let names = |code, dense| -> Vec<&str> {
            used_by(code, dense).into_iter().map(|item| item.name).collect()
        };
        assert_eq!(names("Output{y}; // dia", Dense::Vectors), ["u32", "Output"]);
        assert_eq!(names("const f16* y", Dense::HalfVectors), ["u16", "f16"]);
        assert_eq!(
            names("reduce_lanes<4, 1>(shuffle_up(sum, 1))", Dense::Vectors),
            ["u32", "FULL_WARP", "shuffle_up", "reduce_lanes"]
        );
    }
}
