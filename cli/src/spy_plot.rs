//! Draws a spy plot: where the nonzeros of a matrix are, as a picture.

use std::io;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::structure::SpyGrid;
use sparserl_gpu::store::whole_file::WholeFile;
use thiserror::Error;

/// Longer side of the plotted area, in pixels.
const LONG_SIDE: u32 = 720;
/// The plotted area is at most this many times longer than wide, however long the matrix is.
const MAX_ASPECT: f64 = 5.0;
/// Least width of an SVG, in pixels.
const MIN_SVG_WIDTH: u32 = 520;
/// Cells along a side of an SVG; a PNG has one for each pixel.
const SVG_CELLS: usize = 240;
/// Steps from the lightest to the darkest cell.
const SHADES: usize = 10;
/// Colours of the emptiest cell that holds a nonzero, and of the fullest.
const LIGHT: RGBColor = RGBColor(118, 178, 216);
const DARK: RGBColor = RGBColor(8, 38, 99);
const FRAME: RGBColor = RGBColor(120, 120, 120);
const INK: RGBColor = RGBColor(40, 40, 40);
const FONT_SIZE: u32 = 15;
/// Ticks on an axis, about.
const TICKS: f64 = 5.0;

/// Why a spy plot could not be drawn.
#[derive(Debug, Error)]
pub(crate) enum SpyPlotError {
    /// The file name says neither SVG nor PNG.
    #[error("{}: expected a file name that ends in .svg or .png", .0.display())]
    Extension(PathBuf),
    /// The drawing itself failed.
    #[error("drawing {}: {reason}", path.display())]
    Draw {
        /// The file asked for.
        path: PathBuf,
        /// What the drawing library said.
        reason: String,
    },
    /// The file could not be written.
    #[error("writing {}", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Draws a matrix into an SVG or a PNG, as the extension of `path` says.
///
/// The SVG has a title and axes; the PNG has none, since text on it would need a font file. The
/// file appears whole or not at all.
///
/// # Errors
/// [`SpyPlotError`] for another extension, or when the file cannot be written.
pub(crate) fn draw<T: Scalar>(matrix: CsrView<'_, T>, path: &Path) -> Result<(), SpyPlotError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let (width, height) = plot_size(matrix.rows(), matrix.cols());
    let draw_error = |reason: String| SpyPlotError::Draw { path: path.to_owned(), reason };
    match extension.to_ascii_lowercase().as_str() {
        "svg" => write_whole(path, |file| {
            // A narrow plot still has its title whole.
            let right = 30.max(MIN_SVG_WIDTH.saturating_sub(78 + width));
            let layout = Layout { width, height, left: 78, top: 64, right, bottom: 24 };
            let grid = SpyGrid::new(matrix, SVG_CELLS, SVG_CELLS);
            let area = SVGBackend::new(file, layout.image_size()).into_drawing_area();
            paint(&area, &layout, &grid)
                .and_then(|()| annotate(&area, &layout, matrix, &grid))
                .and_then(|()| area.present())
                .map_err(|e| draw_error(e.to_string()))
        }),
        "png" => write_whole(path, |file| {
            let layout = Layout { width, height, left: 16, top: 16, right: 16, bottom: 16 };
            let grid = SpyGrid::new(matrix, width as usize, height as usize);
            let area = BitMapBackend::new(file, layout.image_size()).into_drawing_area();
            paint(&area, &layout, &grid)
                .and_then(|()| area.present())
                .map_err(|e| draw_error(e.to_string()))
        }),
        _ => Err(SpyPlotError::Extension(path.to_owned())),
    }
}

/// Has `write` fill a temporary file beside `path`, then gives it its name.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), SpyPlotError>,
) -> Result<(), SpyPlotError> {
    let error = |source| SpyPlotError::Write { path: path.to_owned(), source };
    let _uninterrupted = crate::interrupt::watch();
    let file = WholeFile::begin(path).map_err(error)?;
    write(file.temporary_path())?;
    file.finish().map_err(error)
}

/// The area of the plot and the margins around it, in pixels.
struct Layout {
    width: u32,
    height: u32,
    left: u32,
    top: u32,
    right: u32,
    bottom: u32,
}

impl Layout {
    fn image_size(&self) -> (u32, u32) {
        (self.left + self.width + self.right, self.top + self.height + self.bottom)
    }

    /// Where the boundary before index `i` of `count` falls across.
    fn x(&self, i: usize, count: usize) -> i32 {
        boundary(self.left, self.width, i, count)
    }

    /// Where the boundary before index `i` of `count` falls down.
    fn y(&self, i: usize, count: usize) -> i32 {
        boundary(self.top, self.height, i, count)
    }
}

fn boundary(start: u32, length: u32, i: usize, count: usize) -> i32 {
    (u64::from(start) + i as u64 * u64::from(length) / count.max(1) as u64) as i32
}

/// Width and height of the plotted area: the shape of the matrix, as far as it can be looked at.
fn plot_size(rows: usize, cols: usize) -> (u32, u32) {
    let aspect = (cols.max(1) as f64 / rows.max(1) as f64).clamp(1.0 / MAX_ASPECT, MAX_ASPECT);
    let short = |ratio: f64| (f64::from(LONG_SIDE) * ratio).round() as u32;
    if aspect >= 1.0 { (LONG_SIDE, short(1.0 / aspect)) } else { (short(aspect), LONG_SIDE) }
}

type Painted<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Draws background, frame and cells.
fn paint<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    layout: &Layout,
    grid: &SpyGrid,
) -> Painted<DB> {
    area.fill(&WHITE)?;
    let max = grid.max();
    for (row, counts) in grid.counts().chunks(grid.width().max(1)).enumerate() {
        let (top, bottom) = (layout.y(row, grid.height()), layout.y(row + 1, grid.height()));
        let mut col = 0;
        // A run of equal shades is one rectangle, which keeps the SVG small.
        for run in counts.chunk_by(|&a, &b| shade(a, max) == shade(b, max)) {
            let (left, right) =
                (layout.x(col, grid.width()), layout.x(col + run.len(), grid.width()));
            if let Some(step) = run.first().and_then(|&count| shade(count, max)) {
                let corners = [(left, top), (right, bottom)];
                area.draw(&Rectangle::new(corners, colour(step).filled()))?;
            }
            col += run.len();
        }
    }
    let (left, top) = (layout.left as i32 - 1, layout.top as i32 - 1);
    let (right, bottom) = (left + layout.width as i32 + 1, top + layout.height as i32 + 1);
    area.draw(&Rectangle::new([(left, top), (right, bottom)], FRAME))
}

/// The shade of a cell, by the logarithm of its count; none for an empty cell.
fn shade(count: u64, max: u64) -> Option<usize> {
    if count == 0 {
        return None;
    }
    if max <= 1 {
        return Some(SHADES - 1);
    }
    let share = (count as f64).ln() / (max as f64).ln();
    Some((share * (SHADES - 1) as f64).round() as usize)
}

fn colour(step: usize) -> RGBColor {
    let mix = |a: u8, b: u8| {
        let share = step as f64 / (SHADES - 1) as f64;
        (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8
    };
    RGBColor(mix(LIGHT.0, DARK.0), mix(LIGHT.1, DARK.1), mix(LIGHT.2, DARK.2))
}

/// Writes the facts above the plot and the indices along its top and left, as matrices are read.
fn annotate<DB: DrawingBackend, T: Scalar>(
    area: &DrawingArea<DB, Shift>,
    layout: &Layout,
    matrix: CsrView<'_, T>,
    grid: &SpyGrid,
) -> Painted<DB> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let font = |size, h, v| {
        TextStyle::from(("sans-serif", size).into_font()).color(&INK).pos(Pos::new(h, v))
    };
    let left = layout.left as i32;
    let title = font(FONT_SIZE + 3, HPos::Left, VPos::Center);
    area.draw(&Text::new(facts(matrix), (16, 18), title))?;
    if grid.max() > 0 {
        let note = format!("darkest cell: {}", counted(grid.max(), "nonzero"));
        let small = font(FONT_SIZE - 1, HPos::Right, VPos::Center);
        let below = (left + layout.width as i32, (layout.top + layout.height + 12) as i32);
        area.draw(&Text::new(note, below, small))?;
    }
    let across = font(FONT_SIZE, HPos::Center, VPos::Bottom);
    for tick in ticks(cols, f64::from(layout.width)) {
        let (x, y) = (layout.x(tick, cols), layout.top as i32);
        area.draw(&PathElement::new([(x, y - 6), (x, y - 1)], FRAME))?;
        area.draw(&Text::new(tick.to_string(), (x, y - 9), across.clone()))?;
    }
    let down = font(FONT_SIZE, HPos::Right, VPos::Center);
    for tick in ticks(rows, f64::from(layout.height)) {
        let (x, y) = (layout.left as i32, layout.y(tick, rows));
        area.draw(&PathElement::new([(x - 6, y), (x - 1, y)], FRAME))?;
        area.draw(&Text::new(tick.to_string(), (x - 9, y), down.clone()))?;
    }
    Ok(())
}

fn facts<T: Scalar>(matrix: CsrView<'_, T>) -> String {
    let (rows, cols, nnz) = (matrix.rows(), matrix.cols(), matrix.nnz());
    let size = format!("{rows} × {cols}, {}", counted(nnz as u64, "nonzero"));
    if rows == 0 { size } else { format!("{size}, {:.2} a row", nnz as f64 / rows as f64) }
}

fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Round indices below `count` to label along `pixels`: multiples of 1, 2 or 5 times a power of
/// ten.
fn ticks(count: usize, pixels: f64) -> impl Iterator<Item = usize> {
    let wanted = (TICKS * pixels / f64::from(LONG_SIDE)).max(2.0);
    let coarse = (count as f64 / wanted).max(1.0);
    let power = 10_f64.powf(coarse.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= coarse);
    (0..count).step_by(step.unwrap_or(coarse) as usize)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sparserl_core::matrix::{Csr, Offsets};

    use super::*;

    /// A band with a dense first row.
    fn arrow(rows: usize, cols: usize) -> Csr<f32> {
        let mut offsets = vec![0];
        let mut columns: Vec<u32> = (0..cols as u32).collect();
        offsets.push(columns.len() as u32);
        for row in 1..rows {
            let middle = row * cols / rows;
            columns.extend((middle.saturating_sub(2)..(middle + 3).min(cols)).map(|c| c as u32));
            offsets.push(columns.len() as u32);
        }
        let values = vec![1.0; columns.len()];
        Csr::new(rows, cols, Offsets::U32(offsets), columns, values).unwrap()
    }

    fn empty(rows: usize, cols: usize) -> Csr<f32> {
        Csr::new(rows, cols, Offsets::U32(vec![0; rows + 1]), vec![], vec![]).unwrap()
    }

    #[test]
    fn svg_has_facts_and_ticks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svg");
        draw(arrow(300, 100).view(), &path).unwrap();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(
            svg.contains("\n300 × 100, 1579 nonzeros, 5.26 a row"),
            "{}",
            facts(arrow(300, 100).view())
        );
        assert!(svg.contains("\n200\n") && svg.contains("</svg>"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn any_shape_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let shapes = [empty(0, 0), empty(0, 9), empty(5, 5), arrow(1, 1), arrow(25, 10_500)];
        for (i, matrix) in shapes.iter().enumerate() {
            for extension in ["svg", "PNG"] {
                let path = folder.path().join(format!("{i}.{extension}"));
                draw(matrix.view(), &path).unwrap();
                assert!(fs::metadata(&path).unwrap().len() > 100);
            }
        }
    }

    #[test]
    fn png_is_a_png() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        draw(arrow(2000, 2000).view(), &path).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    }

    #[test]
    fn other_extensions_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let matrix = arrow(4, 4);
        for name in ["a.pdf", "a", ".svg"] {
            let result = draw(matrix.view(), &folder.path().join(name));
            assert!(matches!(result, Err(SpyPlotError::Extension(_))), "{name}: {result:?}");
        }
        let result = draw(matrix.view(), &folder.path().join("missing/a.svg"));
        assert!(matches!(result, Err(SpyPlotError::Write { .. })), "{result:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn ticks_are_round() {
        let at = |count| ticks(count, f64::from(LONG_SIDE)).collect::<Vec<_>>();
        assert_eq!(at(150_000), [0, 50_000, 100_000]);
        assert_eq!(at(3), [0, 1, 2]);
        assert_eq!(at(25), [0, 5, 10, 15, 20]);
        assert_eq!(at(0), [] as [usize; 0]);
    }

    #[test]
    fn the_fullest_cell_is_darkest() {
        assert_eq!(shade(0, 9), None);
        assert_eq!(shade(1, 9), Some(0));
        assert_eq!(shade(9, 9), Some(SHADES - 1));
        assert_eq!(shade(1, 1), Some(SHADES - 1));
        assert_eq!((colour(0), colour(SHADES - 1)), (LIGHT, DARK));
    }
}
