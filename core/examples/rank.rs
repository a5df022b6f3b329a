#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]
use sparserl_core::{codegen, decode::*, language::*, layout, matrix::*, structure::*, task::*};
use std::time::Instant;
fn main() {
    for path in std::env::args().skip(1) {
        let t = Instant::now();
        let m = file::load::<f64>(std::path::Path::new(&path), Duplicates::Sum)
            .unwrap()
            .cast::<f32>()
            .unwrap();
        let load = t.elapsed();
        let e = StructureEmbedding::new(m.view(), &EmbeddingConfig::default());
        for cols in [0u32, 8, 32] {
            let operation = if cols == 0 {
                Operation::SpMV
            } else {
                Operation::SpMM { columns: cols.try_into().unwrap() }
            };
            let task = Task { operation, dtype: Dtype::F32 };
            let t = Instant::now();
            let facts = Facts::new(m.view(), task);
            let ranker = CostRanker::new(&facts);
            let Ok(c) = beam_search(&ranker, &e, Mask::legal(&facts), 8);
            let search = t.elapsed();
            let t = Instant::now();
            let packed = layout::pack(m.view(), &c[0].program).unwrap();
            let pack = t.elapsed();
            codegen::emit(&packed).unwrap();
            println!(
                "{:24} {:10} load {:4} search {:4} pack {:4} ms",
                path.rsplit('/').next().unwrap(),
                task.to_string(),
                load.as_millis(),
                search.as_millis(),
                pack.as_millis()
            );
            for k in c.iter().take(2) {
                println!(
                    "      {:7.2} us lp {:6.2} {}",
                    1e6 * facts.cost(&k.program).seconds,
                    k.log_probability,
                    k.program
                        .to_string()
                        .lines()
                        .skip(2)
                        .map(|l| l.trim())
                        .collect::<Vec<_>>()
                        .join(" | ")
                );
            }
        }
    }
}
