#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use sparserl_core::{codegen, language::*, layout, matrix::*};
fn main() {
    let m = generate::rmat(12, 8, 5).cast::<f32>().unwrap();
    let p = Program::parse(&std::env::args().nth(1).unwrap()).unwrap();
    print!("{}", codegen::emit(&layout::pack(m.view(), &p).unwrap()).unwrap().text);
}
