//! The device library, `core/cuda/*.cuh`, by its definitions: a source holds those that it uses.
//! What it uses is told by the names in it, as a linker does: the library is text like what it is
//! used by, and states what it needs nowhere else.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::ending::{Alignment, Ending};
use super::preprocess::identifiers;
use crate::task::{Operation, Task};

/// A file of the library, and which dense operands it is for.
type File = (&'static str, fn(Dense) -> bool);

/// Each file after those that it uses. What differs between SpMV and SpMM,
/// where results are rounded to half precision, by where results go, or where rows have gaps
/// between them, is in a file for each.
const FILES: [File; 39] = [
    (include_str!("../../cuda/types.cuh"), |_| true),
    (include_str!("../../cuda/half.cuh"), |_| true),
    (include_str!("../../cuda/prefetch.cuh"), |_| true),
    (include_str!("../../cuda/predicated.cuh"), |_| true),
    (include_str!("../../cuda/matrices_operand.cuh"), |dense| dense.is_matrices),
    (include_str!("../../cuda/stored.cuh"), |dense| dense.is_matrices),
    (include_str!("../../cuda/to_dense.cuh"), |dense| !dense.is_half),
    (include_str!("../../cuda/to_dense_half.cuh"), |dense| dense.is_half),
    (include_str!("../../cuda/rounded.cuh"), |dense| dense.result == DenseResult::Fused),
    (include_str!("../../cuda/output.cuh"), |dense| {
        dense.is_vectors_to(DenseResult::Updated) && !dense.is_half
    }),
    (include_str!("../../cuda/output_half.cuh"), |dense| {
        dense.is_vectors_to(DenseResult::Updated) && dense.is_half
    }),
    (include_str!("../../cuda/output_apart.cuh"), |dense| dense.is_vectors_to(DenseResult::Apart)),
    (include_str!("../../cuda/output_fused.cuh"), |dense| dense.is_vectors_to(DenseResult::Fused)),
    (include_str!("../../cuda/spmv.cuh"), |dense| !dense.is_matrices),
    (include_str!("../../cuda/matrices.cuh"), |dense| dense.is_matrices && !dense.is_half),
    (include_str!("../../cuda/matrices_half.cuh"), |dense| dense.is_matrices && dense.is_half),
    (include_str!("../../cuda/matrices_columns.cuh"), |dense| {
        dense.is_matrices && !dense.is_half && dense.strided != Some(Alignment::Elements)
    }),
    (include_str!("../../cuda/matrices_columns_half.cuh"), |dense| {
        dense.is_matrices && dense.is_half && dense.strided != Some(Alignment::Elements)
    }),
    (include_str!("../../cuda/matrices_columns_each.cuh"), |dense| {
        dense.is_matrices && dense.strided == Some(Alignment::Elements)
    }),
    (include_str!("../../cuda/matrices_input.cuh"), |dense| {
        dense.is_matrices && !dense.is_half && dense.strided.is_none()
    }),
    (include_str!("../../cuda/matrices_input_half.cuh"), |dense| {
        dense.is_matrices && dense.is_half && dense.strided.is_none()
    }),
    (include_str!("../../cuda/matrices_input_strided.cuh"), |dense| {
        dense.is_matrices && dense.strided.is_some()
    }),
    (include_str!("../../cuda/matrices_stored_strided.cuh"), |dense| {
        dense.is_matrices && dense.is_half && dense.strided.is_some()
    }),
    (include_str!("../../cuda/tensor_cores.cuh"), |dense| dense.is_matrices && dense.is_half),
    (include_str!("../../cuda/matrices_output.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Updated) && !dense.is_half
    }),
    (include_str!("../../cuda/matrices_output_half.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Updated) && dense.is_half
    }),
    (include_str!("../../cuda/matrices_apart.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Apart) && dense.strided.is_none()
    }),
    (include_str!("../../cuda/matrices_fused.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Fused) && dense.strided.is_none()
    }),
    (include_str!("../../cuda/matrices_apart_strided.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Apart) && dense.strided.is_some()
    }),
    (include_str!("../../cuda/matrices_fused_strided.cuh"), |dense| {
        dense.is_matrices_to(DenseResult::Fused) && dense.strided.is_some()
    }),
    (include_str!("../../cuda/spmm.cuh"), |dense| dense.is_matrices),
    (include_str!("../../cuda/products.cuh"), |_| true),
    (include_str!("../../cuda/four.cuh"), |_| true),
    (include_str!("../../cuda/copy_operand.cuh"), |dense| !dense.is_matrices && !dense.is_half),
    (include_str!("../../cuda/copy_operand_half.cuh"), |dense| !dense.is_matrices && dense.is_half),
    (include_str!("../../cuda/merge.cuh"), |_| true),
    (include_str!("../../cuda/merge_rows.cuh"), |_| true),
    (include_str!("../../cuda/merge_scan.cuh"), |_| true),
    (include_str!("../../cuda/merge_columns.cuh"), |_| true),
];

/// The library's name for the type of the dense operands in memory.
const DENSE: &str = "Dense";

/// What the dense operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dense {
    /// B and C, of SpMM; else x and y.
    is_matrices: bool,
    /// In half precision.
    is_half: bool,
    /// Where B and C have leading dimensions, what their rows are aligned to.
    strided: Option<Alignment>,
    result: DenseResult,
}

/// Where results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DenseResult {
    /// In the place of the old ones.
    Updated,
    /// Perhaps elsewhere.
    Apart,
    /// The same, through an epilogue.
    Fused,
}

impl Dense {
    pub(super) fn of(task: Task, ending: Option<&Ending>) -> Self {
        Self {
            is_matrices: task.operation != Operation::SpMV,
            is_half: task.precision.rounds_results(),
            strided: ending.and_then(|ending| ending.strided(task.operation)),
            result: match ending {
                None => DenseResult::Updated,
                Some(ending) if ending.epilogue().is_some() => DenseResult::Fused,
                Some(_) => DenseResult::Apart,
            },
        }
    }

    fn is_vectors_to(self, result: DenseResult) -> bool {
        !self.is_matrices && self.result == result
    }

    fn is_matrices_to(self, result: DenseResult) -> bool {
        self.is_matrices && self.result == result
    }
}

/// A definition at the top level of the library, with the comment before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    name: &'static str,
    lines: Vec<&'static str>,
}

impl Item {
    /// Lines of the comment before the definition.
    fn comment_lines(&self) -> usize {
        self.lines.iter().take_while(|line| line.starts_with("//")).count()
    }
}

/// The definitions that `code` uses, and all that those use, each after what it uses.
pub(super) fn used_by(code: &str, dense: Dense) -> Vec<Item> {
    let mut items: Vec<Item> = FILES
        .into_iter()
        .filter(|(_, is_for)| is_for(dense))
        .flat_map(|(text, _)| split(text))
        .collect();
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

/// Writes definitions of the library. Neighbours of which the same is to be said stand together,
/// beneath one comment.
pub(super) fn write_items(text: &mut String, items: &[Item], dense_type: &str) -> fmt::Result {
    let mut is_short = true;
    let mut said: &[&str] = &[];
    for item in items {
        let (comment, definition) = item.lines.split_at(item.comment_lines());
        let says_the_same = !comment.is_empty() && comment == said;
        said = comment;
        // Aliases and constants stand together.
        let was_short = core::mem::replace(&mut is_short, item.lines.len() == 1);
        if !(was_short && is_short || says_the_same) {
            writeln!(text)?;
        }
        let comment = if says_the_same { &[] } else { comment };
        for line in comment.iter().chain(definition) {
            writeln!(text, "{}", line.replace(DENSE, dense_type))?;
        }
    }
    Ok(())
}

/// The definitions of a file. One ends with a line outside of all brackets that ends in `;` or `}`.
fn split(text: &'static str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut depth = 0;
    for line in text.lines().filter(|line| !is_of_the_file(line)) {
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

/// Whether a line is about the file as such, and no part of a definition.
fn is_of_the_file(line: &str) -> bool {
    line.starts_with("#pragma once") || line.starts_with("#include")
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
        _ => declarator,
    };
    declarator.split(" {").next()?.rsplit(' ').next()
}

fn without_comment(line: &'static str) -> &'static str {
    line.split("//").next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Dense> {
        let results = [DenseResult::Updated, DenseResult::Apart, DenseResult::Fused];
        let forms = [(false, false), (false, true), (true, false), (true, true)];
        let packed = forms.into_iter().flat_map(move |(is_matrices, is_half)| {
            results.map(|result| Dense { is_matrices, is_half, strided: None, result })
        });
        let can_be = |dense: &Dense| dense.is_matrices && dense.result != DenseResult::Updated;
        let strided = packed.clone().filter(can_be).flat_map(|dense| {
            [Alignment::Vectors, Alignment::Elements]
                .map(|alignment| Dense { strided: Some(alignment), ..dense })
        });
        packed.chain(strided)
    }

    fn vectors(is_half: bool) -> Dense {
        let result = DenseResult::Updated;
        Dense { is_matrices: false, is_half, strided: None, result }
    }

    #[test]
    fn every_file_is_split_into_definitions_with_their_names() {
        for (text, _) in FILES {
            let items = split(text);
            let kept: usize = items.iter().map(|item| item.lines.len()).sum();
            let written = text.lines().filter(|line| !is_of_the_file(line));
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
        for dense in all() {
            let all =
                "merge_rows merge_scan merge_columns load_operand_if prefetch f16 bf16 Output";
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
        assert_eq!(names("Output{y}; // dia", vectors(false)), ["u32", "Output"]);
        assert_eq!(names("const f16* y", vectors(true)), ["u16", "f16"]);
        assert_eq!(
            names("reduce_lanes<4, 1>(shuffle_up(sum, 1))", vectors(false)),
            ["u32", "FULL_WARP", "shuffle_up", "reduce_lanes"]
        );
    }
}
