#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]
use sparserl_core::{codegen, language::*, layout, matrix::*, task::*};
fn matrix(n: usize, seed: u64, kind: usize) -> Csr<f64> {
    let mut s = seed;
    let mut r = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s
    };
    let mut offs = vec![0u32];
    let mut cols = vec![];
    let mut vals = vec![];
    for i in 0..n {
        let len = match kind {
            0 => 5,
            1 => {
                if i % 97 == 0 {
                    300
                } else {
                    r() as usize % 8
                }
            }
            _ => (i % 3 == 0) as usize,
        };
        let mut c: Vec<u32> = match kind {
            0 => (0..len)
                .filter_map(|d| (i + d * 3).checked_sub(6).filter(|&c| c < n).map(|c| c as u32))
                .collect(),
            _ => (0..len).map(|_| (r() % n as u64) as u32).collect(),
        };
        c.sort();
        c.dedup();
        for _ in &c {
            vals.push(if kind == 2 {
                1.0
            } else if kind == 0 {
                (r() % 5) as f64
            } else {
                r() as f64 / 1e19
            });
        }
        cols.extend(c);
        offs.push(cols.len() as u32);
    }
    Csr::new(n, n, Offsets::U32(offs), cols, vals).unwrap()
}
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let per: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let mut s = 88172645463325252u64;
    let mut rng = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s.wrapping_mul(0x2545F4914F6CDD1D)
    };
    let mut count = 0;
    for kind in 0..3 {
        for (op, cols) in [("spmv", 0), ("spmm", 8), ("spmm", 33)] {
            let m = matrix(1000, 77 + kind as u64, kind);
            let operation = if op == "spmv" {
                Operation::SpMV
            } else {
                Operation::SpMM { columns: cols.try_into().unwrap() }
            };
            let t = Task { operation, dtype: Dtype::F64 };
            let facts = Facts::new(m.view(), t);
            let mut space = Space::new(Mask::legal(&facts));
            println!("{kind} {t}: {} programs", space.count());
            for _ in 0..per {
                let p = space.sample(&mut rng);
                assert_eq!(Program::parse(&p.to_string()).unwrap(), p);
                assert_eq!(Program::from_tokens(t, &p.tokens()).unwrap(), p);
                let cost = facts.cost(&p);
                let packed = layout::pack(m.view(), &p).unwrap_or_else(|e| panic!("{e}\n{p}"));
                assert_eq!(layout::unpack::<f64>(&packed).unwrap(), m);
                let src = codegen::emit(&packed).unwrap();
                let _ = cost;
                std::fs::write(format!("{dir}/{count:04}.cu"), &src.text).unwrap();
                count += 1;
            }
        }
    }
}
