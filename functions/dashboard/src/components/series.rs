//! Values over time as lines, drawn on the server. Lines differ by their
//! strokes as well as by colour, every point can be hovered, followed and read
//! in the table behind the chart.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::markers::Marker;

use crate::components::marker_list::spoken;

/// Size of the drawing; it is stretched to the width of the page, strokes are
/// not.
const WIDTH: i64 = 1_000;
const HEIGHT: i64 = 120;
/// Room above the highest value.
const HEADROOM: i64 = 8;
/// How far the stroke of a single point reaches to either side.
const STUB: i64 = 3;

/// One line of the chart.
pub(crate) struct LineOf<'t> {
    /// What it shows.
    pub name: &'t str,
    /// Its values, one per point; `None` where there is none.
    pub values: Vec<Option<i64>>,
}

/// A point in time.
pub(crate) struct Point {
    /// As the table and the tooltip name it.
    pub label: String,
    /// What can be said besides the values.
    pub note: Option<String>,
    /// Where it leads.
    pub href: Option<String>,
}

/// What a chart says at one of its points: the index of the point, and words.
pub(crate) type PointMark = (usize, String);

struct Stroke {
    name: String,
    class: &'static str,
    /// Pieces without gaps, as `x,y x,y …`.
    pieces: Vec<String>,
}

struct Hit {
    x: i64,
    width: i64,
    centre: i64,
    title: String,
    href: Option<String>,
    /// Whether something changed here for good.
    is_mark: bool,
}

/// What happened between two points.
struct Flag {
    x: i64,
    title: String,
}

/// A number beside the title, with what is said before and after it.
struct Fact {
    before: Option<String>,
    value: String,
    after: Option<String>,
}

struct TableRow {
    label: String,
    note: Option<String>,
    href: Option<String>,
    values: Vec<Option<String>>,
}

/// Inputs of `components/series.html`.
#[derive(Template)]
#[template(path = "components/series.html")]
pub(crate) struct Series {
    title: String,
    facts: Vec<Fact>,
    strokes: Vec<Stroke>,
    hits: Vec<Hit>,
    /// What the marks of the chart stand for, where it has any.
    marked: Option<&'static str>,
    flags: Vec<Flag>,
    top: String,
    first: String,
    last: String,
    rows: Vec<TableRow>,
}

impl HtmlSafe for Series {}

impl Series {
    /// A chart of lines over points, oldest first; `show` writes a value.
    pub(crate) fn new(
        title: impl Into<String>,
        points: Vec<Point>,
        lines: &[LineOf<'_>],
        show: impl Fn(i64) -> String,
    ) -> Self {
        const CLASSES: [&str; 3] = ["line-first", "line-second", "line-third"];
        let count = i64::try_from(points.len()).unwrap_or(1).max(1);
        let most = lines.iter().flat_map(|line| &line.values).flatten().copied().max().unwrap_or(0).max(1);
        let centre = |at: i64| (2 * at + 1) * WIDTH / (2 * count);
        let strokes = lines.iter().zip(CLASSES).map(|(line, class)| Stroke {
            name: line.name.to_owned(),
            class,
            pieces: pieces(&line.values, centre, most),
        });
        let value = |line: &LineOf<'_>, at: usize| line.values.get(at).copied().flatten().map(&show);
        let spoken = |at: usize, point: &Point| {
            let values = lines.iter().filter_map(|line| Some(format!("{} {}", line.name, value(line, at)?)));
            let all = std::iter::once(point.label.clone()).chain(values).chain(point.note.clone());
            all.collect::<Vec<_>>().join(", ")
        };
        let hits = points.iter().enumerate().map(|(index, point)| {
            let at = i64::try_from(index).unwrap_or(0);
            Hit {
                x: at * WIDTH / count,
                width: WIDTH / count,
                centre: centre(at),
                title: spoken(index, point),
                href: point.href.clone(),
                is_mark: false,
            }
        });
        let label = |point: Option<&Point>| point.map(|point| point.label.clone()).unwrap_or_default();
        Self {
            title: title.into(),
            facts: Vec::new(),
            strokes: strokes.collect(),
            hits: hits.collect(),
            marked: None,
            flags: Vec::new(),
            top: show(most),
            first: label(points.first()),
            last: label(points.last()),
            rows: points
                .iter()
                .enumerate()
                .map(|(at, point)| TableRow {
                    label: point.label.clone(),
                    note: point.note.clone(),
                    href: point.href.clone(),
                    values: lines.iter().map(|line| value(line, at)).collect(),
                })
                .collect(),
        }
    }

    /// The same with what happened between the points, whose moments these
    /// are, oldest first. What came before the first point is left out.
    #[must_use]
    pub(crate) fn with_markers(mut self, times: &[Timestamp], markers: &[Marker]) -> Self {
        let count = i64::try_from(times.len()).unwrap_or(1).max(1);
        let flags = markers.iter().filter_map(|marker| {
            let before = times.iter().take_while(|time| **time < marker.occurred_at).count();
            let at = i64::try_from(before).ok().filter(|before| *before > 0)?;
            Some(Flag { x: at * WIDTH / count, title: spoken(marker) })
        });
        self.flags = flags.collect();
        self
    }

    /// The same with marks at some points, which the table tells as well; the
    /// legend names them by what they stand for.
    #[must_use]
    pub(crate) fn with_marks(mut self, stand_for: &'static str, marks: &[PointMark]) -> Self {
        for (at, words) in marks {
            let (Some(hit), Some(row)) = (self.hits.get_mut(*at), self.rows.get_mut(*at)) else { continue };
            hit.is_mark = true;
            self.marked = Some(stand_for);
            hit.title = format!("{}. {words}", hit.title);
            row.note = Some(match row.note.take() {
                Some(note) => format!("{note}. {words}"),
                None => words.clone(),
            });
        }
        self
    }

    /// The same with other words at both ends of the axis, where the points are
    /// named too exactly for it.
    #[must_use]
    pub(crate) fn between(mut self, first: impl Into<String>, last: impl Into<String>) -> Self {
        self.first = first.into();
        self.last = last.into();
        self
    }

    /// A number in the head of the chart.
    #[must_use]
    pub(crate) fn fact(mut self, value: impl Into<String>, name: impl Into<String>) -> Self {
        self.facts.push(Fact { before: None, value: value.into(), after: Some(name.into()) });
        self
    }

    /// A number beside the title whose name is said first: `p90 2 s`.
    #[must_use]
    pub(crate) fn measure(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push(Fact { before: Some(name.into()), value: value.into(), after: None });
        self
    }
}

/// The runs of points that have a value. A single point has no length to be
/// drawn: it becomes a short stroke.
fn pieces(values: &[Option<i64>], centre: impl Fn(i64) -> i64, most: i64) -> Vec<String> {
    let places: Vec<Option<(i64, i64)>> = values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let height = i128::from((*value)?) * i128::from(HEIGHT - HEADROOM) / i128::from(most);
            let at = i64::try_from(index).unwrap_or(0);
            Some((centre(at), HEIGHT - i64::try_from(height).unwrap_or(0)))
        })
        .collect();
    let runs = places.split(Option::is_none).filter(|run| !run.is_empty());
    let piece = |run: &[Option<(i64, i64)>]| {
        let points: Vec<String> = match run {
            [Some((x, y))] => vec![format!("{},{y}", x - STUB), format!("{},{y}", x + STUB)],
            points => points.iter().flatten().map(|(x, y)| format!("{x},{y}")).collect(),
        };
        points.join(" ")
    };
    runs.map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_divides_a_line_and_the_highest_value_stays_inside() {
        let values = [Some(0), Some(50), None, Some(100)];
        assert_eq!(pieces(&values, |at| at * 10, 100), ["0,120 10,64", "27,8 33,8"]);
    }
}
