//! `inspect` on the committed matrices.

use std::fs;

use serde_json::Value;
use sparserl_core::structure::{DensityGrids, Features};

use crate::support::{MATRICES, Place, matrix};

#[test]
fn every_matrix_is_described() {
    let place = Place::new();
    for name in MATRICES {
        let text = place.succeed(&format!("inspect {}", matrix(name)));
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        for feature in Features::NAMES {
            assert!(text.contains(feature), "{feature}: {text}");
        }
        assert!(text.contains("Legal programs for spmv f32") && text.contains('█'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
    assert!(place.names("").is_empty(), "nothing is written unless asked for");
}

#[test]
fn figures_are_those_of_the_matrix() {
    // The Laplacian of a 64 × 64 grid.
    let place = Place::new();
    let text = place.succeed(&format!("inspect {} --json", matrix("poisson2d.mtx")));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["matrix"]["rows"], 4096);
    assert_eq!(report["matrix"]["nnz"], 5 * 4096 - 4 * 64);
    assert_eq!(report["rows"]["max"], 5);
    assert_eq!(report["rows"]["empty"], 0);
    assert_eq!(report["rows"]["quantiles"][0], serde_json::json!([0.0, 3]));
    assert_eq!(report["features"]["symmetry"], 1.0);
    assert!(report["programs"].as_str().unwrap().parse::<u128>().unwrap() > 1000);
    let picture = report["picture"]["nonzeros"].as_array().unwrap();
    let drawn: u64 = picture.iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(drawn, 5 * 4096 - 4 * 64);
    assert!(report.get("embedding").is_none());
}

#[test]
fn the_embedding_is_whole() {
    let place = Place::new();
    let text = place.succeed(&format!("inspect {} --json --embedding", matrix("rmat10.mtx.gz")));
    let report: Value = serde_json::from_str(&text).unwrap();
    let embedding = &report["embedding"];
    let length = |value: &Value| value.as_array().unwrap().len() as u64;
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(
        length(&embedding["tokens"]),
        number(&embedding["n_tokens"]) * number(&embedding["d"])
    );
    assert_eq!(number(&embedding["n_tokens"]), number(&report["samples"]["nonzeros"]));
    assert_eq!(length(&embedding["grids"]["cells"]), DensityGrids::CELLS as u64);
    assert_eq!(embedding["features"].as_object().unwrap().len(), Features::COUNT);
}

#[test]
fn the_plot_goes_where_it_is_asked_for() {
    let place = Place::new();
    for (file, start) in [("a.svg", &b"<svg"[..]), ("b.png", b"\x89PNG")] {
        let text = place.succeed(&format!("inspect {} --plot {file}", matrix("beam.mtx")));
        assert!(text.contains(&format!("Spy plot: {file}\n")), "{text}");
        assert!(fs::read(place.path(file)).unwrap().starts_with(start));
    }
    let error = place.fail(&format!("inspect {} --plot c.pdf", matrix("beam.mtx")));
    assert!(error.contains("c.pdf") && error.contains(".svg or .png"), "{error}");
    assert_eq!(place.names(""), ["a.svg", "b.png"]);
}

#[test]
fn counting_can_be_asked_for() {
    let place = Place::new();
    let text = place.succeed(&format!("inspect {} --count --op spmm --cols 8", matrix("beam.mtx")));
    assert!(text.contains("Legal programs for spmm 8 f32: "), "{text}");
}

#[test]
fn empty_matrices_are_described() {
    let place = Place::new();
    for size in ["0 0 0", "0 5 0", "5 0 0", "7 9 0"] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{size}\n");
        fs::write(place.path("a.mtx"), text).unwrap();
        let text = place.succeed("inspect a.mtx --plot a.svg");
        assert!(
            !text.contains("NaN") && !text.contains("inf") && !text.contains("-0.00"),
            "{text}"
        );
        serde_json::from_str::<Value>(&place.succeed("inspect a.mtx --json")).unwrap();
    }
}
