//! `inspect`: what a policy sees of a matrix.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use sparserl_core::language::{Mask, Space};
use sparserl_core::matrix::{Csr, CsrView, MatrixIdentity, Scalar};
use sparserl_core::plan::TaskPlan;
use sparserl_core::structure::{
    EmbeddingConfig, Features, MatrixStats, Moments, RowLengths, SpyGrid, StructureEmbedding,
};
use sparserl_core::task::Task;
use sparserl_core::with_scalar;
use sparserl_gpu::store::fingerprint::identity;

use crate::args::InspectArgs;
use crate::console;
use crate::feature_table::FeatureTable;
use crate::load::{Matrix, load_whole, round};

use crate::progress::Progress;
use crate::spy_plot;
use crate::summary::size;
use crate::text;

/// Cells of the picture in text. A character is about twice as high as wide.
const PICTURE: (usize, usize) = (32, 16);
/// From an empty cell to the fullest.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// Counting the programs of a matrix with more nonzeros is left out unless asked for: it looks at
/// every row for thousands of splits and orders.
const COUNTED_NONZEROS: usize = 50_000;
/// Row lengths that are shown: of the shares of the rows that are no longer.
const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("10 %", 0.1),
    ("25 %", 0.25),
    ("50 %", 0.5),
    ("75 %", 0.75),
    ("90 %", 0.9),
    ("99 %", 0.99),
];

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<()> {
    let progress = Progress::new(4, !args.json);
    progress.step(format!("loading {}", args.matrix.file_name()));
    let Matrix { matrix, note, is_pattern } = load_whole(&args.matrix)?;
    progress.step("looking at the structure");
    let embedding = StructureEmbedding::new(matrix.view(), &EmbeddingConfig::default());
    let task = args.task.task_for(is_pattern);
    progress.step("counting programs");
    let programs = if args.count || matrix.nnz() <= COUNTED_NONZEROS {
        Some(count(&matrix, task, args)?)
    } else {
        None
    };
    let report = Report {
        matrix: identity(args.matrix.file_name(), matrix.view()),
        density: density(matrix.view()),
        rows: RowStatistics::new(matrix.view()),
        features: embedding.features,
        picture: Picture::new(matrix.view()),
        samples: Samples {
            nonzeros: embedding.n_tokens,
            width: embedding.d,
            embedding_version: embedding.version,
        },
        task: task.into(),
        task_text: task.to_string(),
        programs,
        plot: args.plot.clone(),
        embedding: args.embedding.then_some(embedding),
    };
    if let Some(path) = &args.plot {
        progress.step("drawing");
        spy_plot::draw(matrix.view(), path)?;
    }
    drop(progress);
    if let Some(note) = note {
        console::say(&format!("note: {note}"));
    }
    if args.json {
        console::print(&text::json(&report)?)
    } else {
        console::print(&report.to_string())
    }
}

/// Legal programs for the task, as text, since JSON's numbers are too short.
fn count(matrix: &Csr<f64>, task: Task, args: &InspectArgs) -> anyhow::Result<String> {
    fn count_as<T: Scalar>(matrix: CsrView<'_, T>, task: Task) -> u128 {
        let stats = MatrixStats::new(matrix);
        Space::new(Mask::legal(&stats, task)).count()
    }
    let count = with_scalar!(
        task.precision.matrix(),
        T => count_as(round::<T>(matrix, &args.matrix)?.view(), task)
    );
    Ok(count.to_string())
}

/// What `inspect` prints; its serde form is the document of `--json`.
#[derive(Serialize)]
struct Report {
    matrix: MatrixIdentity,
    density: f64,
    rows: RowStatistics,
    /// As the policy gets them; the table of the text tells what they stand for.
    features: Features,
    picture: Picture,
    samples: Samples,
    task: TaskPlan,
    #[serde(skip)]
    task_text: String,
    /// Legal programs for the task, in decimal; null when they were not counted.
    programs: Option<String>,
    /// Where the spy plot is.
    plot: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<StructureEmbedding>,
}

/// The nonzeros that stand for all in the embedding.
#[derive(Serialize)]
struct Samples {
    nonzeros: usize,
    /// Numbers for each.
    width: usize,
    embedding_version: u32,
}

/// The lengths of the rows, exactly.
#[derive(Serialize)]
struct RowStatistics {
    empty: u64,
    mean: f64,
    deviation: f64,
    max: u64,
    /// Of each share of the rows, the greatest length.
    quantiles: Vec<(f64, u64)>,
}

impl RowStatistics {
    fn new(matrix: CsrView<'_, f64>) -> Self {
        let counted = RowLengths::of(matrix);
        let Moments { mean, deviation, .. } = counted.moments();
        // Exact, unlike those of the features, whose histogram is coarse for long rows.
        let mut lengths: Vec<_> =
            (0..matrix.rows()).map(|row| matrix.row_len(row) as u64).collect();
        lengths.sort_unstable();
        let quantile = |share: f64| {
            let rank = (share * lengths.len() as f64).ceil() as usize;
            lengths.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            empty: counted.empty(),
            mean,
            deviation,
            max: counted.longest(),
            quantiles: QUANTILES.map(|(_, share)| (share, quantile(share))).to_vec(),
        }
    }
}

/// Nonzeros over rows · columns; 0 when there is no place for any.
fn density(matrix: CsrView<'_, f64>) -> f64 {
    let places = matrix.rows() as f64 * matrix.cols() as f64;
    if places > 0.0 { matrix.nnz() as f64 / places } else { 0.0 }
}

/// A spy plot in text: nonzeros by cell.
#[derive(Serialize)]
struct Picture {
    width: usize,
    height: usize,
    /// Row by row.
    nonzeros: Vec<u64>,
}

impl Picture {
    fn new(matrix: CsrView<'_, f64>) -> Self {
        let grid = SpyGrid::new(matrix, PICTURE.0, PICTURE.1);
        Self { width: grid.width(), height: grid.height(), nonzeros: grid.counts().to_vec() }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nonzeros.is_empty() {
            return Ok(());
        }
        let most = self.nonzeros.iter().copied().max().unwrap_or(0);
        writeln!(f, "  ┌{}┐", "─".repeat(self.width))?;
        for cells in self.nonzeros.chunks(self.width) {
            let line: String = cells.iter().map(|&n| shade(n, most)).collect();
            writeln!(f, "  │{line}│")?;
        }
        writeln!(f, "  └{}┘", "─".repeat(self.width))
    }
}

/// By the logarithm of the count, since a few cells often hold most.
fn shade(count: u64, most: u64) -> char {
    let steps = SHADES.len() - 2;
    let share = if most > 1 { (count as f64).ln() / (most as f64).ln() } else { 1.0 };
    if count == 0 { SHADES[0] } else { SHADES[1 + (share * steps as f64).round() as usize] }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, density {:.3e}", self.matrix.name, size(&self.matrix), self.density)?;
        writeln!(f, "blake3 {}", self.matrix.fingerprint)?;

        let RowStatistics { empty, mean, deviation, max, quantiles } = &self.rows;
        writeln!(f, "\nRow lengths: {mean:.2} ± {deviation:.2}, {empty} empty")?;
        for (name, _) in QUANTILES {
            write!(f, "  {name:>7}")?;
        }
        writeln!(f, "  {:>7}", "max")?;
        for length in quantiles.iter().map(|(_, length)| length).chain([max]) {
            write!(f, "  {length:>7}")?;
        }
        writeln!(f)?;

        writeln!(f, "\nNonzeros, empty to most: {}", SHADES.iter().collect::<String>())?;
        write!(f, "{}", self.picture)?;

        writeln!(f, "\nFeatures, as the policy gets them and what they stand for")?;
        write!(f, "{}", FeatureTable(&self.features))?;

        let Samples { nonzeros, width, embedding_version } = self.samples;
        writeln!(
            f,
            "\nEmbedding (version {embedding_version}): {nonzeros} of {} nonzeros, {width} numbers each",
            self.matrix.nnz
        )?;
        match &self.programs {
            Some(count) => {
                writeln!(f, "Legal programs for {}: {}", self.task_text, grouped(count))?;
            }
            None => {
                writeln!(f, "Legal programs for {}: not counted; --count does", self.task_text)?;
            }
        }
        match &self.plot {
            Some(path) => writeln!(f, "Spy plot: {}", path.display()),
            None => writeln!(f, "Spy plot: not drawn; --plot FILE.svg does"),
        }
    }
}

/// Decimal digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::Offsets;

    use super::*;

    #[test]
    fn row_statistics_are_exact() {
        let matrix =
            Csr::new(4, 3, Offsets::U32(vec![0, 0, 3, 4, 6]), vec![0, 1, 2, 0, 0, 1], vec![1.0; 6]);
        let rows = RowStatistics::new(matrix.unwrap().view());
        assert_eq!((rows.empty, rows.mean, rows.max), (1, 1.5, 3));
        assert_eq!(rows.quantiles.iter().map(|q| q.1).collect::<Vec<_>>(), [0, 0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn shades_grow_with_the_count() {
        assert_eq!([0, 1, 10, 100].map(|n| shade(n, 100)), ['·', '░', '▓', '█']);
        assert_eq!(shade(1, 1), '█');
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            ["7", "123", "1234", "1234567"].map(grouped),
            ["7", "123", "1,234", "1,234,567"]
        );
    }
}
