use alloc::vec::Vec;

/// A file of `core/cuda`.
struct Block {
    name: &'static str,
    text: &'static str,
}

macro_rules! blocks {
    ($($name:literal,)*) => {
        const BLOCKS: &[Block] = &[$(Block {
            name: $name,
            text: include_str!(concat!("../../cuda/", $name)),
        },)*];
    };
}

blocks! {
    "types.cuh",
    "prefetch.cuh",
    "columns.cuh",
    "values.cuh",
    "rows.cuh",
    "dense.cuh",
    "walk.cuh",
    "reduce.cuh",
    "csr.cuh",
    "sell.cuh",
    "dia.cuh",
    "bcsr.cuh",
    "merge.cuh",
    "products.cuh",
    "merge_rows.cuh",
    "merge_scan.cuh",
    "merge_columns.cuh",
}

/// The texts of the named blocks and of all that they include, each once and after what it needs,
/// without preprocessor lines.
pub(super) fn inline(names: &[&str]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut order = Vec::new();
    for name in names {
        visit(name, &mut order);
    }
    let lines = |block: &'static Block| {
        let code = block.text.lines().filter(|line| !is_directive(line));
        (block.name, code.skip_while(|line| line.is_empty()).collect())
    };
    order.into_iter().map(lines).collect()
}

fn visit(name: &str, order: &mut Vec<&'static Block>) {
    let Some(block) = BLOCKS.iter().find(|block| block.name == name) else { return };
    if order.iter().any(|seen| seen.name == name) {
        return;
    }
    for line in block.text.lines() {
        if let Some(included) = line.strip_prefix("#include \"") {
            visit(included.trim_end_matches('"'), order);
        }
    }
    order.push(block);
}

fn is_directive(line: &str) -> bool {
    line.starts_with("#pragma once") || line.starts_with("#include \"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_include_is_a_known_block() {
        for block in BLOCKS {
            for line in block.text.lines().filter_map(|l| l.strip_prefix("#include \"")) {
                let included = line.trim_end_matches('"');
                assert!(BLOCKS.iter().any(|b| b.name == included), "{}: {included}", block.name);
            }
        }
    }

    #[test]
    fn blocks_follow_what_they_need() {
        let names: Vec<_> = inline(&["csr.cuh"]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "types.cuh");
        assert_eq!(names.last(), Some(&"csr.cuh"));
        assert_eq!(names.iter().filter(|&&name| name == "types.cuh").count(), 1);
    }
}
