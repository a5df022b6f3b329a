//! A program in words, a line for each part.

use sparserl_core::language::{Layout, Node, Order, Part, Program, SplitRule, Token, Word};
use sparserl_core::task::Operation;

/// What becomes of the rows, part by part.
pub(crate) fn in_words(program: &Program) -> Vec<String> {
    let mut lines = Vec::new();
    walk(program, &program.body, "", &mut lines);
    lines
}

/// The parts of a node, for the rows that meet conditions.
fn walk(program: &Program, node: &Node, rows: &str, lines: &mut Vec<String>) {
    match node {
        Node::Split { rule, low, high } => {
            for (side, is_low) in [(low, true), (high, false)] {
                let condition = condition(*rule, is_low);
                let rows = if rows.is_empty() {
                    condition
                } else {
                    format!("{rows}, of these {condition}")
                };
                walk(program, side, &rows, lines);
            }
        }
        Node::Part(part) => {
            let rows = if rows.is_empty() { "all rows" } else { rows };
            lines.push(format!("{rows}{}: {}", order(part.order), storage(program, part)));
        }
    }
}

fn condition(rule: SplitRule, is_low: bool) -> String {
    match (rule, is_low) {
        (SplitRule::Length { threshold }, true) => format!("rows of up to {threshold} entries"),
        (SplitRule::Length { threshold }, false) => {
            format!("rows of more than {threshold} entries")
        }
        (SplitRule::Nonzeros { eighths }, true) => {
            format!("the first rows, with {eighths}/8 of the entries")
        }
        (SplitRule::Nonzeros { .. }, false) => "the other rows".to_owned(),
    }
}

fn order(order: Order) -> String {
    match order {
        Order::Keep => String::new(),
        Order::Sort { window } => format!(", sorted by length in windows of {window}"),
    }
}

/// How the rows of a part are stored and mapped to threads.
fn storage(program: &Program, part: &Part) -> String {
    let is_vector = program.task.operation == Operation::SpMV;
    // What shares a base for its columns, what shares threads, and the entries that a thread takes
    // by one load.
    let (layout, unit, shared, at_once) = match part.layout {
        Layout::Csr(_) => ("compressed rows (CSR)".to_owned(), "row", "row", 1),
        Layout::Sell(sell) => {
            let slices = format!("slices of {} rows, padded to the longest", sell.height());
            (slices + " (SELL-C-σ)", "slice", "row", 1)
        }
        Layout::Dia(_) => {
            ("whole diagonals, without column indices".to_owned(), "diagonal", "row", 1)
        }
        Layout::Bcsr(bcsr) => {
            let side = bcsr.side();
            let by = match bcsr.is_on_tensor_cores(program.task) {
                true => ", multiplied by tensor cores",
                false => "",
            };
            let blocks = format!("dense blocks of {side} × {side}{by}");
            (blocks, "row of blocks", if is_vector { "row" } else { "row of blocks" }, 1)
        }
        Layout::Cvse(cvse) => {
            let rows = cvse.rows();
            let groups = format!("groups of {rows} rows, stored column by column (CVSE)");
            (groups, "group of rows", "group of rows", 1)
        }
        Layout::Merge(merge) => {
            let who = if is_vector { "thread" } else { "group of threads" };
            let items = merge.items();
            let tiles = format!("tiles of the merge path, {items} entries and row ends a {who}");
            (tiles, if is_vector { "tile" } else { "group" }, "row", 1)
        }
        Layout::Chunk(chunk) => {
            let chunks = format!("chunks of up to {} entries of a row", chunk.entries());
            (chunks, "chunk", "chunk", 4)
        }
        Layout::Binned(_) => {
            let how = "panels of columns, each multiplied from shared memory, then bins of rows, each added up from it (propagation blocking)";
            (how.to_owned(), "panel", "row", 4)
        }
        Layout::Ell(_) => {
            let rows = "rows of equally many slots, a multiple of four (ELLPACK)";
            (rows.to_owned(), "row", "row", 4)
        }
    };
    let fields = part.layout.fields().into_iter();
    let phrases = fields.filter_map(|(name, value)| phrase(name, value, (unit, shared), at_once));
    std::iter::once(layout).chain(phrases).collect::<Vec<_>>().join("; ")
}

/// What a field says; nothing where its layout's phrase has said it, or where it is the usual.
fn phrase(name: &str, value: Token, (unit, shared): (&str, &str), at_once: u32) -> Option<String> {
    Some(match (name, value) {
        ("height" | "side" | "items" | "entries", _) => return None,
        ("vector", Token::Number(1)) => return None,
        ("shared", Token::Number(units)) => format!("{} KiB of shared memory", 32 * units),
        ("index", Token::Word(Word::U32)) => "column indices of 32 bits".to_owned(),
        ("index", Token::Word(Word::U16)) => "column indices of 16 bits".to_owned(),
        ("index", Token::Word(Word::D16)) => {
            format!("columns as distances of 16 bits from the first of the {unit}")
        }
        ("index", Token::Word(Word::D8)) => {
            format!("columns as distances of 8 bits from the first of the {unit}")
        }
        ("values", Token::Word(Word::Plain)) => "values as they are".to_owned(),
        ("values", Token::Word(Word::Constant)) => "one value for all entries".to_owned(),
        ("values", Token::Word(Word::Dictionary)) => {
            "values as codes of 8 bits into a table".to_owned()
        }
        ("cache", Token::Word(Word::Cached)) => "arrays kept in the caches".to_owned(),
        ("cache", Token::Word(Word::Streamed)) => "arrays first to leave the caches".to_owned(),
        ("panel", Token::Number(columns)) => {
            format!("in panels of {columns} columns of B and C, one after the other")
        }
        ("vector", Token::Number(columns)) => format!("{columns} columns of B by one load"),
        ("lanes", Token::Word(Word::Block)) => format!("a block of threads for each {shared}"),
        ("lanes", Token::Number(1)) => format!("a thread for each {shared}"),
        ("lanes", Token::Number(lanes)) => format!("{lanes} threads for each {shared}"),
        ("rows", _) if unit == "group of rows" => return None,
        ("rows", Token::Number(1)) => "a row for each thread".to_owned(),
        ("rows", Token::Number(rows)) => format!("{rows} rows for each thread"),
        ("unroll", Token::Number(steps)) => match (unit, steps * at_once) {
            ("group of rows", vectors) if vectors > 1 => {
                format!("{vectors} column vectors in flight")
            }
            (_, 1) => "one after the other".to_owned(),
            ("diagonal", diagonals) => format!("{diagonals} diagonals in flight"),
            (_, entries) => format!("{entries} entries in flight"),
        },
        ("reduction", Token::Word(Word::Scan)) => "rows added up by a scan".to_owned(),
        ("reduction", Token::Number(1)) => "rows added up by a thread each".to_owned(),
        ("reduction", Token::Number(lanes)) => format!("rows added up by {lanes} threads each"),
        (name, value) => format!("{name}={value}"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn words(body: &str) -> Vec<String> {
        in_words(&Program::parse(&format!("sparserl 3\nspmv f32\nblock 128\n{body}")).unwrap())
    }

    #[test]
    fn a_program_is_put_into_words() {
        let body =
            "keep sell height=32 index=u16 values=constant cache=cached vector=1 lanes=4 unroll=4";
        assert_eq!(
            words(body),
            [
                "all rows: slices of 32 rows, padded to the longest (SELL-C-σ); column indices of 16 \
              bits; one value for all entries; arrays kept in the caches; 4 threads for each row; 4 \
              entries in flight"
            ]
        );
        let split = "split-length threshold=4 sort window=32 csr index=d8 values=plain cache=streamed \
                     vector=1 lanes=1 unroll=1 split-nonzeros eighths=4 keep csr index=d8 values=plain \
                     cache=cached vector=1 lanes=block unroll=2 keep dia values=plain cache=cached \
                     vector=1 rows=2 unroll=4";
        let lines = words(split);
        let starts = [
            "rows of up to 4 entries, sorted by length in windows of 32: compressed rows (CSR); columns \
             as distances of 8 bits from the first of the row; values as they are; arrays first to \
             leave the caches; a thread for each row; one after the other",
            "rows of more than 4 entries, of these the first rows, with 4/8 of the entries: ",
            "rows of more than 4 entries, of these the other rows: whole diagonals, ",
        ];
        assert_eq!(lines.len(), starts.len());
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn every_field_of_the_golden_programs_has_a_phrase() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
        let mut count = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "skl") {
                let program = Program::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
                let lines = in_words(&program);
                assert_eq!(lines.len(), program.parts().len());
                assert!(lines.iter().all(|line| !line.contains('=')), "{lines:?}");
                count += 1;
            }
        }
        assert!(count > 70, "{count}");
    }
}
