//! Links the C library, which std would have linked.

fn main() {
    println!("cargo::rustc-link-lib=c");
}
