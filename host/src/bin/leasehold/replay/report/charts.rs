//! Draws a run's [`Timeline`] as SVG: bytes, running requests and growth times over trace time.
//!
//! Pure. All runs of a report are drawn at one [`Scale`], so that they can be held against each other; the time axis is
//! each run's own, since one that preallocates may take ten times as long. The page's style
//! gives text and grid the colours of the reader's scheme: see [`INK`] and [`GRID`].

use super::super::timeline::{Held, TimePoint, Timeline};
use super::mark::Mark;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;
use std::time::Duration;

const SIZE: (u32, u32) = (960, 260);
/// Of all text: `text` to the page's style.
const INK: RGBColor = RGBColor(0, 0, 0);
/// Of all that is neither text nor a [`Mark`]: `stroke="#C0C0C0"` to the page's style.
const GRID: RGBColor = RGBColor(0xc0, 0xc0, 0xc0);

/// A chart that could not be drawn: a fault of the program.
#[derive(Debug, thiserror::Error)]
#[error("report: a chart could not be drawn: {0}; report this as a fault of the program")]
pub(crate) struct ChartError(String);

/// The most that any run of a report reaches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    bytes: f64,
    running: f64,
    growth: Range<f64>,
}

/// One line, or the area below it. Those that come first are below.
struct Line {
    mark: Mark,
    /// Runs of points that hang together, as seconds and values.
    pieces: Vec<Vec<(f64, f64)>>,
    paint: Paint,
}

/// How a line is painted, so that those which lie on each other are all seen.
#[derive(Clone, Copy)]
enum Paint {
    Area,
    Wide,
    Thin,
}

struct Axes<'chart, Y> {
    /// The whole run.
    seconds: f64,
    y: Y,
    name: &'chart str,
    label: &'chart dyn Fn(&f64) -> String,
}

impl Scale {
    pub(super) fn of<'run>(timelines: impl Iterator<Item = &'run Timeline>) -> Self {
        // Where nothing was recorded, there still is a chart.
        let mut scale = Self { bytes: 1.0, running: 1.0, growth: 1.0..1e-9 };
        for TimePoint { most, growth, .. } in timelines.flat_map(|one| &one.points) {
            scale.bytes = scale.bytes.max(float(most.owned_bytes.max(most.mapped_bytes).max(most.ideal_bytes)));
            scale.running = scale.running.max(float(most.running));
            if let Some(growth) = growth {
                scale.growth.start = scale.growth.start.min(seconds(growth.p50_ns));
                scale.growth.end = scale.growth.end.max(seconds(growth.max_ns));
            }
        }
        scale.growth = whole_decades(&scale.growth);
        scale
    }
}

/// Bytes over trace time.
pub(super) fn memory(timeline: &Timeline, scale: &Scale) -> Result<String, ChartError> {
    let (unit, name) = byte_unit(scale.bytes);
    let bytes = |of: fn(&Held) -> u64| steps(timeline, |point| Some(float(of(&point.most)) / unit));
    plot(
        Axes { seconds: length(timeline), y: 0.0..scale.bytes / unit * 1.05, name, label: &|value| tidy(*value) },
        &[
            Line { mark: Mark::Ideal, pieces: bytes(|held| held.ideal_bytes), paint: Paint::Area },
            Line { mark: Mark::Mapped, pieces: bytes(|held| held.mapped_bytes), paint: Paint::Wide },
            Line { mark: Mark::Owned, pieces: bytes(|held| held.owned_bytes), paint: Paint::Thin },
        ],
    )
}

/// Running requests over trace time.
pub(super) fn running(timeline: &Timeline, scale: &Scale) -> Result<String, ChartError> {
    let pieces = steps(timeline, |point| Some(float(point.most.running)));
    plot(
        Axes {
            seconds: length(timeline),
            y: 0.0..scale.running * 1.05,
            name: "requests",
            label: &|value| tidy(*value),
        },
        &[Line { mark: Mark::Running, pieces, paint: Paint::Thin }],
    )
}

/// Times of growth calls over trace time, on a logarithmic axis.
pub(super) fn growth(timeline: &Timeline, scale: &Scale) -> Result<String, ChartError> {
    let time = |of: fn(&TimePoint) -> Option<u64>| steps(timeline, move |point| of(point).map(seconds));
    plot(
        Axes {
            seconds: length(timeline),
            y: scale.growth.clone().log_scale(),
            name: "time of a call",
            label: &|value| format!("{:?}", Duration::try_from_secs_f64(*value).unwrap_or(Duration::MAX)),
        },
        &[
            Line { mark: Mark::Slowest, pieces: time(|point| Some(point.growth?.max_ns)), paint: Paint::Thin },
            Line { mark: Mark::Tail, pieces: time(|point| Some(point.growth?.p99_ns)), paint: Paint::Thin },
            Line { mark: Mark::Median, pieces: time(|point| Some(point.growth?.p50_ns)), paint: Paint::Thin },
        ],
    )
}

fn plot<Y>(axes: Axes<'_, Y>, lines: &[Line]) -> Result<String, ChartError>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    draw(&mut svg, axes, lines).map_err(|error| ChartError(error.to_string()))?;
    Ok(svg)
}

fn draw<Y>(svg: &mut String, axes: Axes<'_, Y>, lines: &[Line]) -> Result<(), DrawingAreaErrorKind<std::io::Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..axes.seconds, axes.y)?;
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0).bold_line_style(GRID).axis_style(GRID).label_style(("sans-serif", 15, &INK));
    mesh.x_desc("trace time, s").x_label_formatter(&|value| tidy(*value));
    mesh.y_desc(axes.name).y_label_formatter(axes.label).y_labels(6).draw()?;
    for line in lines {
        let color = line.mark.color();
        for piece in &line.pieces {
            let points = piece.iter().copied();
            match line.paint {
                Paint::Area => chart.draw_series([Polygon::new(down_to_zero(piece), color.mix(0.35).filled())])?,
                Paint::Wide => chart.draw_series(LineSeries::new(points, color.mix(0.6).stroke_width(6)))?,
                Paint::Thin => chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?,
            };
        }
    }
    area.present()
}

/// How long the run took; a moment at least, as an axis has a length.
fn length(timeline: &Timeline) -> f64 {
    let last = timeline.points.last().map_or(Duration::ZERO, |last| last.at);
    last.saturating_add(timeline.width).as_secs_f64().max(1e-9)
}

/// A level line over each point's stretch of time, in pieces where the value is missing in between.
fn steps(timeline: &Timeline, value: impl Fn(&TimePoint) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
    let ends = |point: &TimePoint| [point.at, point.at.saturating_add(timeline.width)].map(|end| end.as_secs_f64());
    let there = timeline.points.chunk_by(|one, next| value(one).is_some() && value(next).is_some());
    let levels = there.map(|points| {
        let levels = points.iter().filter_map(|point| Some((ends(point), value(point)?)));
        levels.flat_map(|([from, to], value)| [(from, value), (to, value)]).collect::<Vec<_>>()
    });
    levels.filter(|piece| !piece.is_empty()).collect()
}

/// The outline of the area below a line.
fn down_to_zero(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let last = line.last().map(|(end, _)| (*end, 0.0));
    let first = line.first().map(|(start, _)| (*start, 0.0));
    line.iter().copied().chain(last).chain(first).collect()
}

/// The largest unit of which there is one at least, and its name.
fn byte_unit(most: f64) -> (f64, &'static str) {
    let units = [(1024.0 * 1024.0 * 1024.0, "GiB"), (1024.0 * 1024.0, "MiB"), (1024.0, "KiB")];
    units.into_iter().find(|(unit, _)| most >= *unit).unwrap_or((1.0, "bytes"))
}

/// The powers of ten around a range of times; a decade at least.
fn whole_decades(times: &Range<f64>) -> Range<f64> {
    let start = times.start.min(times.end).max(1e-9).log10().floor();
    let end = times.end.max(1e-9).log10().ceil().max(start + 1.0);
    10f64.powf(start)..10f64.powf(end)
}

/// With up to four decimals, and none that says nothing.
fn tidy(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

#[expect(clippy::as_conversions, reason = "no `From`, as large numbers round; a chart's may")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::latency::GrowthLatency;
    use super::*;

    const GIB: u64 = 1 << 30;

    fn timeline() -> Timeline {
        let held = Held { owned_bytes: 2 * GIB, mapped_bytes: 3 * GIB, ideal_bytes: GIB, running: 4 };
        let growth = Some(GrowthLatency { calls: 9, p50_ns: 40, p99_ns: 5_000, max_ns: 80_000 });
        let point = |at, most, growth| TimePoint { at: Duration::from_secs(at), most, growth };
        let points = vec![point(0, held, growth), point(10, Held::default(), None), point(20, held, growth)];
        Timeline { width: Duration::from_secs(10), points }
    }

    #[test]
    fn a_scale_holds_every_run_in_whole_decades() {
        let scale = Scale::of([&Timeline::default(), &timeline()].into_iter());
        assert_eq!((scale.bytes, scale.running), (3.0 * float(GIB), 4.0));
        assert!((scale.growth.start - 1e-8).abs() < 1e-12 && (scale.growth.end - 1e-4).abs() < 1e-9, "{scale:?}");
    }

    #[test]
    fn each_chart_has_its_lines_in_their_colours_and_its_units() {
        let (timeline, scale) = (timeline(), Scale::of([&timeline()].into_iter()));
        let charts = [
            (memory(&timeline, &scale), "GiB", &[Mark::Mapped, Mark::Owned, Mark::Ideal][..]),
            (running(&timeline, &scale), "requests", &[Mark::Running]),
            (growth(&timeline, &scale), "100µs", &[Mark::Slowest, Mark::Tail, Mark::Median]),
        ];
        for (chart, text, marks) in charts {
            let svg = chart.unwrap();
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
            assert!(svg.contains(text) && svg.contains("trace time, s"), "{svg}");
            for mark in marks {
                let RGBColor(red, green, blue) = mark.color();
                assert!(svg.contains(&format!("=\"#{red:02X}{green:02X}{blue:02X}\"")), "{mark:?}: {svg}");
            }
        }
    }

    #[test]
    fn an_empty_run_has_charts_without_lines() {
        let (timeline, scale) = (Timeline::default(), Scale::of(std::iter::empty()));
        for chart in [memory(&timeline, &scale), running(&timeline, &scale), growth(&timeline, &scale)] {
            assert!(chart.unwrap().contains("trace time, s"));
        }
    }

    #[test]
    fn a_time_axis_ends_with_the_last_point() {
        assert_eq!([length(&timeline()), length(&Timeline::default())], [30.0, 1e-9]);
    }

    #[test]
    fn a_line_is_level_over_a_point_and_broken_where_there_is_none() {
        let seen = steps(&timeline(), |point| point.growth.map(|growth| float(growth.calls)));
        assert_eq!(seen, [[(0.0, 9.0), (10.0, 9.0)], [(20.0, 9.0), (30.0, 9.0)]]);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0.0, 200.0, 0.30000000000000004, 2.5].map(tidy), ["0", "200", "0.3", "2.5"]);
        assert_eq!([5.0, 1024.0, 5e6, 5e12].map(|bytes| byte_unit(bytes).1), ["bytes", "KiB", "MiB", "GiB"]);
    }
}
