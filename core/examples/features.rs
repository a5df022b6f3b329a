#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
use sparserl_core::{language::*, matrix::*, task::*};
use std::collections::BTreeMap;
fn main() {
    let tsv = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let mut by: BTreeMap<(String, String), Vec<Vec<String>>> = BTreeMap::new();
    for l in tsv.lines().skip(1) {
        let f: Vec<String> = l.split('\t').map(str::to_owned).collect();
        if f[2] == "ours" && !f[0].starts_with("dlmc") {
            by.entry((f[0].clone(), f[1].clone())).or_default().push(f);
        }
    }
    for ((name, task), rows) in by {
        let m = match name.as_str() {
            "g_stencil5" => generate::stencil5(1500, 1500),
            "g_stencil27" => generate::stencil27(80, 80, 80),
            "g_rmat" => generate::rmat(17, 16, 5),
            "g_uniform" => generate::uniform(500_000, 500_000, 10, 3),
            "g_fem" => generate::fem_blocks(60_000, 3, 9),
            "g_banded" => generate::banded(400_000, 8, 4),
            "g_hyper" => generate::hyper_sparse(2_000_000, 2_000_000, 400_000, 8),
            n => file::load::<f64>(
                std::path::Path::new(&format!("/work/shared/matrices/{n}.mtx.gz")),
                Duplicates::Sum,
            )
            .unwrap(),
        }
        .cast::<f32>()
        .unwrap();
        let w: Vec<&str> = task.split(' ').collect();
        let operation = if w[0] == "spmv" {
            Operation::SpMV
        } else {
            Operation::SpMM { columns: w[1].parse().unwrap() }
        };
        let t = Task { operation, dtype: Dtype::F32 };
        let facts = Facts::new(m.view(), t);
        for r in rows {
            let text = format!("sparserl 1\n{task}\n{}", r[4].replace(" | ", "\n"));
            let p = Program::parse(&text).unwrap();
            if p.parts().len() > 1 {
                continue;
            }
            let part = p.parts()[0];
            let site =
                grammar::Site { block: p.block.threads(), rows: RowSetId::ALL, order: part.order };
            let c = facts.part_cost(site, part);
            println!(
                "{name}\t{task}\t{}\t{}\t{}\t{}\t{:.1}\t{:.3}\t{}\t{}\t{}\t{}",
                r[4],
                r[7],
                r[8],
                c.matrix_bytes,
                c.transactions * (2112.0 / c.warps()).max(1.0),
                c.critical_steps,
                m.rows(),
                m.cols(),
                m.nnz(),
                c.seconds()
            );
        }
    }
}
