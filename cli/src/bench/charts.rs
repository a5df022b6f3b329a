//! The report's charts, as SVG text.
//!
//! They scale with the page: letters are large enough to be read at half the size. Titles and
//! legends are the page's, so that they wrap; colours are those of Okabe and Ito, and markers
//! differ in shape.

use std::ops::Range;

use anyhow::Context;
use maud::html;
use plotters::coord::Shift;
use plotters::coord::combinators::WithKeyPoints;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use sparserl_core::results::Rival;

const WIDTH: u32 = 640;
const HEIGHT: u32 = 400;
/// Of axis labels.
const FONT: u32 = 19;
/// Of matrix names.
const NAME_FONT: u32 = 18;
const NAME_WIDTH: u32 = 226;
const LONGEST_NAME: usize = 26;
/// More rows than this have no names: the table has them.
const MOST_NAMES: usize = 80;
/// About as high as a page.
const UNNAMED_HEIGHT: u32 = 900;
const INK: RGBColor = RGBColor(34, 34, 34);
const GRID: RGBColor = RGBColor(225, 225, 225);
const FAINT: RGBColor = RGBColor(170, 170, 170);
/// Row lengths that vary less are drawn here.
const LEAST_VARIATION: f64 = 0.01;

/// What is drawn of a case, in one regime.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) nnz: usize,
    pub(crate) row_variation: f64,
    pub(crate) default: Option<f64>,
    pub(crate) best: Option<f64>,
    pub(crate) floor_share: Option<f64>,
}

impl Point {
    fn against(&self, rival: Rival) -> Option<f64> {
        match rival {
            Rival::Default => self.default,
            Rival::Best => self.best,
        }
    }

    /// What it is, where somebody asks for it.
    fn label(&self) -> String {
        let ratios = [Rival::Best, Rival::Default]
            .into_iter()
            .filter_map(|rival| Some(format!("{:.2}× {}", self.against(rival)?, rival.name())));
        let floor = self.floor_share.map(|share| format!("{:.0} % of the floor", 100.0 * share));
        let facts: Vec<String> = ratios.chain(floor).collect();
        format!("{}: {}", self.name, facts.join(", "))
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.default.into_iter().chain(self.best)
    }
}

/// What runs along a scatter plot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Along {
    Nonzeros,
    RowVariation,
}

impl Along {
    fn of(self, point: &Point) -> f64 {
        match self {
            Self::Nonzeros => point.nnz.max(1) as f64,
            Self::RowVariation => point.row_variation.max(LEAST_VARIATION),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Nonzeros => "nonzeros",
            Self::RowVariation => "deviation of row lengths / mean",
        }
    }

    fn label(self, value: f64) -> String {
        match self {
            Self::RowVariation if value <= LEAST_VARIATION => format!("≤ {LEAST_VARIATION}"),
            Self::RowVariation => plain(value),
            Self::Nonzeros => match value {
                v if v < 1e3 => plain(v),
                v if v < 1e6 => format!("{} k", plain(v / 1e3)),
                v if v < 1e9 => format!("{} M", plain(v / 1e6)),
                v => format!("{} G", plain(v / 1e9)),
            },
        }
    }
}

/// The colour of a rival's marks: blue and vermilion.
pub(crate) fn colour(rival: Rival) -> RGBColor {
    match rival {
        Rival::Default => RGBColor(0, 114, 178),
        Rival::Best => RGBColor(213, 94, 0),
    }
}

/// A mark of a chart that says what it is, when somebody points at it or comes to it by keyboard.
struct Spot {
    at: (i32, i32),
    label: String,
    /// Of a point's several marks, one can be come to.
    is_main: bool,
}

/// The spots as elements over the marks. What they say shows by style alone (`report.css`).
fn overlay(spots: &[Spot], width: u32) -> String {
    let markup = html! {
        @for Spot { at: (x, y), label, is_main } in spots {
            g.spot tabindex=[is_main.then_some("0")] role="img" aria-label=(label) {
                circle.hit cx=(x) cy=(y) r="11" {}
                text.tip x=((*x).clamp(4, width as i32 - 4)) y=(if *y < 30 { y + 28 } else { y - 14 })
                    text-anchor=(anchor(f64::from(*x) / f64::from(width))) { (label) }
            }
        }
    };
    markup.into_string()
}

/// Where a text is held that stands at this share of the width, so that it stays inside.
fn anchor(share: f64) -> &'static str {
    match share {
        left if left < 0.35 => "start",
        right if right > 0.65 => "end",
        _ => "middle",
    }
}

/// Both ratios of each matrix, a row each, the largest on top.
///
/// # Errors
/// When drawing fails.
pub(crate) fn ranked(points: &[Point]) -> anyhow::Result<String> {
    let rank = |point: &Point| point.best.or(point.default).unwrap_or(0.0);
    let mut points: Vec<&Point> = points.iter().filter(|p| p.ratios().next().is_some()).collect();
    // From the bottom up.
    points.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let named = points.len() <= MOST_NAMES;
    let count = points.len() as u32;
    let height =
        80 + if named { 24 * count } else { (7 * count).min(UNNAMED_HEIGHT.max(2 * count)) };
    let ratios = ratio_range(points.iter().flat_map(|p| p.ratios()));
    svg((WIDTH, height), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(24)
            .x_label_area_size(62)
            .y_label_area_size(if named { NAME_WIDTH } else { 24 })
            .build_cartesian_2d(log_axis(&ratios), -0.5..points.len() as f64 - 0.5)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(FAINT)
            .x_label_formatter(&|&ratio| format!("{}×", plain(ratio)))
            .label_style(text(FONT))
            .x_desc("time of cuSPARSE / ours")
            .draw()?;
        let ends = [(1.0, -0.5), (1.0, points.len() as f64 - 0.5)];
        chart.draw_series([PathElement::new(ends, INK.stroke_width(2))])?;
        for (row, point) in points.iter().enumerate() {
            let row = row as f64;
            if let (Some(a), Some(b)) = (point.default, point.best) {
                chart.draw_series([PathElement::new([(a, row), (b, row)], FAINT)])?;
            }
            if named {
                let (_, y) = chart.plotting_area().map_coordinate(&(ratios.start, row));
                let style = text(NAME_FONT).pos(Pos::new(HPos::Right, VPos::Center));
                let at = (NAME_WIDTH as i32 - 10, y);
                area.draw(&Text::new(shortened(&point.name), at, style))?;
            }
        }
        let mut spots = Vec::new();
        for rival in Rival::ALL {
            let at = points
                .iter()
                .enumerate()
                .filter_map(|(row, &point)| Some((point, (point.against(rival)?, row as f64))));
            spots.extend(mark(&mut chart, rival, at)?);
        }
        Ok(spots)
    })
}

/// Both ratios of each matrix, against one of its properties.
///
/// # Errors
/// When drawing fails.
pub(crate) fn scatter(points: &[Point], along: Along) -> anyhow::Result<String> {
    let ratios = ratio_range(points.iter().flat_map(Point::ratios));
    let across = padded(points.iter().map(|point| along.of(point)));
    svg((WIDTH, HEIGHT), |area| {
        let mut chart = frame(area).build_cartesian_2d(log_axis(&across), log_axis(&ratios))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(FAINT)
            .x_label_formatter(&|&value| along.label(value))
            .y_label_formatter(&|&ratio| format!("{}×", plain(ratio)))
            .label_style(text(FONT))
            .x_desc(along.title())
            .y_desc("time of cuSPARSE / ours")
            .draw()?;
        let ends = [(across.start, 1.0), (across.end, 1.0)];
        chart.draw_series([PathElement::new(ends, INK.stroke_width(2))])?;
        let mut spots = Vec::new();
        for rival in Rival::ALL {
            let at = points.iter().filter_map(|p| Some((p, (along.of(p), p.against(rival)?))));
            spots.extend(mark(&mut chart, rival, at)?);
        }
        Ok(spots)
    })
}

/// The share of the floor that each matrix reaches, against its nonzeros.
///
/// # Errors
/// When drawing fails.
pub(crate) fn roofline(points: &[Point]) -> anyhow::Result<String> {
    let across = padded(points.iter().map(|point| Along::Nonzeros.of(point)));
    let most = points.iter().filter_map(|p| p.floor_share).fold(1.0, f64::max);
    svg((WIDTH, HEIGHT), |area| {
        let mut chart = frame(area).build_cartesian_2d(log_axis(&across), 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(FAINT)
            .y_labels(6)
            .x_label_formatter(&|&value| Along::Nonzeros.label(value))
            .y_label_formatter(&|share| format!("{:.0} %", 100.0 * share))
            .label_style(text(FONT))
            .x_desc(Along::Nonzeros.title())
            .y_desc("floor / time")
            .draw()?;
        let ends = [(across.start, 1.0), (across.end, 1.0)];
        chart.draw_series([PathElement::new(ends, INK.stroke_width(2))])?;
        let at = points.iter().filter_map(|p| Some((p, (Along::Nonzeros.of(p), p.floor_share?))));
        let at: Vec<_> = at.collect();
        let green = RGBColor(0, 122, 90).mix(0.85).filled();
        chart.draw_series(at.iter().map(|&(_, at)| Circle::new(at, 5, green)))?;
        let spot = |&(point, at): &(&Point, _)| Spot {
            at: chart.plotting_area().map_coordinate(&at),
            label: point.label(),
            is_main: true,
        };
        Ok(at.iter().map(spot).collect())
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart with room for labels at the left and below.
fn frame<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(12).margin_right(24).x_label_area_size(62).y_label_area_size(90);
    builder
}

fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> anyhow::Result<Vec<Spot>>,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    let spots = {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let spots = draw(&area)?;
        area.present()?;
        spots
    };
    let drawn = svg.trim_end().strip_suffix("</svg>").context("a chart without an end")?;
    Ok(format!("{drawn}{}</svg>\n", overlay(&spots, size.0)))
}

/// Draws a rival's marks, rings for the default, triangles for the best, and says where they are.
fn mark<'a, 'p, X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<X, Y>>,
    rival: Rival,
    points: impl Iterator<Item = (&'p Point, (f64, f64))>,
) -> anyhow::Result<Vec<Spot>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let colour = colour(rival);
    let points: Vec<(&Point, (f64, f64))> = points.collect();
    let at = points.iter().map(|&(_, at)| at);
    match rival {
        // A triangle fits into a ring, so that both are seen where the two are equal.
        Rival::Default => {
            let ring = colour.stroke_width(2);
            chart.draw_series(at.map(|at| Circle::new(at, 6, ring)))?
        }
        Rival::Best => {
            chart.draw_series(at.map(|at| TriangleMarker::new(at, 5, colour.filled())))?
        }
    };
    let spot = |&(point, at): &(&Point, _)| Spot {
        at: chart.plotting_area().map_coordinate(&at),
        label: point.label(),
        is_main: rival == Rival::Best || point.best.is_none(),
    };
    Ok(points.iter().map(spot).collect())
}

fn text(size: u32) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size).into_font()).color(&INK)
}

/// A logarithmic axis with labels at round values.
fn log_axis(range: &Range<f64>) -> WithKeyPoints<LogCoord<f64>> {
    (range.start..range.end).log_scale().with_key_points(round_values(range))
}

/// Around all ratios, 1 among them; to 10 where they come near, so that it is labelled.
pub(crate) fn ratio_range(ratios: impl Iterator<Item = f64>) -> Range<f64> {
    let Range { start, end } = padded(ratios.chain([0.8, 1.25]));
    start..if (7.0..10.5).contains(&end) { 10.5 } else { end }
}

/// A little more than from the least to the most.
fn padded(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values
        .filter(|value| *value > 0.0 && value.is_finite())
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if least > most {
        return 0.5..2.0;
    }
    let room = (most / least).powf(0.06).max(1.08);
    least / room..most * room
}

/// Values that are easily read, 2 to 9 of them: finer ones in a narrow range.
fn round_values(range: &Range<f64>) -> Vec<f64> {
    let decades = (range.end / range.start).log10();
    let steps: &[f64] = match decades {
        d if d > 3.0 => &[1.0],
        d if d > 0.9 => &[1.0, 2.0, 4.0],
        d if d > 0.4 => &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
        _ => &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    };
    let skip = if decades > 8.0 { 2 } else { 1 };
    let first = range.start.log10().floor() as i32;
    let last = range.end.log10().ceil() as i32;
    let powers = (first..=last).step_by(skip).map(|power| 10_f64.powi(power));
    let values = powers.flat_map(|power| steps.iter().map(move |step| step * power));
    // Without the last bits, in which a product differs from the number that is meant.
    let values = values.map(|value| (value * 1e9).round() / 1e9);
    values.filter(|value| range.contains(value)).collect()
}

/// At most three digits after the point, none that say nothing.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A name that fits beside the chart: its middle is left out, since both ends tell matrices apart.
fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let kept = LONGEST_NAME - 1;
    let start: String = letters.iter().take(kept.div_ceil(2)).collect();
    let end: String = letters.iter().skip(letters.len() - kept / 2).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round_and_few() {
        assert_eq!(round_values(&(0.74..1.35)), [0.8, 0.9, 1.0, 1.2]);
        assert_eq!(round_values(&(0.35..8.0)), [0.4, 1.0, 2.0, 4.0]);
        assert_eq!(round_values(&(0.7..3.1)), [0.8, 1.0, 1.5, 2.0, 3.0]);
        let ratios = ratio_range([1.3, 7.5].into_iter());
        assert_eq!(round_values(&ratios), [1.0, 2.0, 4.0, 10.0]);
        for end in [1.1, 2.0, 9.0, 80.0, 1e3, 1e5, 1e9] {
            let count = round_values(&(0.9..end)).len();
            assert!((1..=11).contains(&count), "{end}: {count}");
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("short.mtx"), "short.mtx");
        let name = shortened("a_very_long_name_of_a_matrix_from_a_collection_17.mtx");
        assert_eq!(name.chars().count(), LONGEST_NAME);
        assert!(name.starts_with("a_very_long") && name.ends_with("17.mtx"), "{name}");
    }

    #[test]
    fn numbers_have_no_idle_digits() {
        assert_eq!([1.0, 0.5, 20.0, 0.125].map(plain), ["1", "0.5", "20", "0.125"]);
        assert_eq!(Along::Nonzeros.label(2e6), "2 M");
    }
}
