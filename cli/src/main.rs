//! x

#[allow(dead_code)]
mod spy_plot;

fn main() {}
