//! Charts, drawn on the server as SVG. Heights are pixels, horizontal places
//! are percentages, so a chart fits any width without being stretched.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::{Day, Timestamp};
use callboard_query::daily::DayCounts;
use callboard_query::markers::Marker;
use callboard_query::shapes::ExecutionWithRun;

use crate::components::PointMark;
use crate::components::marker_list::spoken as spoken_marker;
use crate::components::outcome_bar::counts;
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::text::{day_of, duration, grouped, relative};

/// Days a trend shows.
pub(crate) const TREND_DAYS: i64 = 30;
/// Height of the drawing area, pixels.
const HEIGHT: i64 = 96;
/// The least a count that is not nothing gets, pixels.
const LEAST: i64 = 2;
/// Columns of a history keep their width until there are more than these.
const SLOTS: usize = 60;

/// A piece of a column.
pub(crate) struct Block {
    tone: Tone,
    y: i64,
    height: i64,
}

/// One column: a day, or an execution.
pub(crate) struct Column {
    /// Left edge, in hundredths of a percent.
    x: Hundredths,
    blocks: Vec<Block>,
    title: String,
    href: Option<String>,
}

/// A number with two decimals, as SVG wants it.
#[derive(Clone, Copy)]
pub(crate) struct Hundredths(i64);

impl Hundredths {
    /// So many percent of it.
    pub(crate) const fn share(self, percent: i64) -> Self {
        Self(self.0 * percent / 100)
    }
}

impl std::fmt::Display for Hundredths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl HtmlSafe for Hundredths {}

/// Left edge of column `index` of `count`, in hundredths of a percent; that of
/// the second one is the width of each.
pub(crate) fn place(index: usize, count: usize) -> Hundredths {
    let (index, count) = (i64::try_from(index).unwrap_or(0), i64::try_from(count.max(1)).unwrap_or(1));
    Hundredths(10_000 * index / count)
}

/// What happened around a project, as a flag on the time line.
pub(crate) struct Flag {
    x: Hundredths,
    title: String,
}

/// Inputs of `components/trend.html`: outcomes of the last 30 days, a column
/// per day, trouble at the foot where days can be compared.
#[derive(Template)]
#[template(path = "components/trend.html")]
pub(crate) struct Trend {
    columns: Vec<Column>,
    flags: Vec<Flag>,
    step: Hundredths,
    days: Vec<DayCounts>,
    first: Day,
    last: Day,
    most: i64,
    runs: i64,
    tones: Vec<Tone>,
    pass_rate: Option<f64>,
    /// Which runs it counts, where that does not go without saying.
    about: Option<String>,
}

impl HtmlSafe for Trend {}

impl Trend {
    /// The trend up to `today`. `runs_of` gives the address of a day's runs,
    /// where there is one.
    pub(crate) fn new(mut days: Vec<DayCounts>, today: Day, runs_of: impl Fn(Day) -> Option<String>) -> Self {
        let first = Day(today.0 - TREND_DAYS + 1);
        // A client whose clock runs ahead has begun on a day that the chart does not have yet.
        days.retain(|day| (first..=today).contains(&day.date));
        let most = days.iter().map(|day| day.totals.total_tests).max().unwrap_or(0);
        let slots = usize::try_from(TREND_DAYS).unwrap_or(1);
        let columns = days.iter().map(|day| {
            let index = usize::try_from(day.date.0 - first.0).unwrap_or(0);
            Column {
                x: place(index, slots),
                blocks: stack(&counts(&day.totals), most),
                title: spoken(day),
                href: runs_of(day.date),
            }
        });
        let columns = columns.collect();
        let sum = |of: fn(&DayCounts) -> i64| days.iter().map(of).sum::<i64>();
        let (passed, failed) = (sum(|day| day.totals.passed_tests), sum(|day| day.totals.failed_tests));
        let order =
            [Tone::Failed, Tone::Flaky, Tone::Interrupted, Tone::DidNotRun, Tone::Skipped, Tone::Passed];
        let occurs =
            |tone: &Tone| days.iter().any(|day| counts(&day.totals).iter().any(|(found, _)| found == tone));
        Self {
            columns,
            flags: Vec::new(),
            step: Hundredths(10_000 / TREND_DAYS),
            first,
            last: today,
            most,
            runs: sum(|day| day.runs),
            tones: order.into_iter().filter(occurs).collect(),
            pass_rate: callboard_domain::totals::rate(passed, passed + failed),
            about: None,
            days,
        }
    }

    /// The same with a word about which runs it counts.
    #[must_use]
    pub(crate) fn about(self, about: Option<String>) -> Self {
        Self { about, ..self }
    }

    /// The same with what happened on these days.
    #[must_use]
    pub(crate) fn with_markers(mut self, markers: &[Marker]) -> Self {
        const DAY_MS: i64 = 86_400_000;
        let from = self.first.start().millis();
        let flags = markers.iter().filter_map(|marker| {
            let at = marker.occurred_at.millis() - from;
            let is_shown = (0..TREND_DAYS * DAY_MS).contains(&at);
            let x = Hundredths(10_000 * at / (TREND_DAYS * DAY_MS));
            is_shown.then(|| Flag { x, title: spoken_marker(marker) })
        });
        self.flags = flags.collect();
        self
    }
}

fn spoken(day: &DayCounts) -> String {
    let outcomes: Vec<String> = counts(&day.totals)
        .iter()
        .map(|(tone, count)| format!("{} {}", grouped(*count), tone.word().to_lowercase()))
        .collect();
    let runs = if day.runs == 1 { "1 run".to_owned() } else { format!("{} runs", grouped(day.runs)) };
    let tests = if outcomes.is_empty() { "no tests".to_owned() } else { outcomes.join(", ") };
    format!("{}: {runs}, {tests}", day_of(day.date))
}

/// Stacks counts from the foot up; nothing that occurred is invisible.
fn stack(counts: &[(Tone, i64)], most: i64) -> Vec<Block> {
    let mut foot = HEIGHT;
    let mut blocks = Vec::with_capacity(counts.len());
    for &(tone, count) in counts {
        let height =
            (i128::from(count) * i128::from(HEIGHT) / i128::from(most.max(1))).max(i128::from(LEAST));
        let height = i64::try_from(height).unwrap_or(LEAST).min(foot);
        foot -= height;
        blocks.push(Block { tone, y: foot, height });
    }
    blocks
}

/// Inputs of `components/history_chart.html`: executions of one test, oldest
/// first; the height is the duration, the colour the outcome.
#[derive(Template)]
#[template(path = "components/history_chart.html")]
pub(crate) struct HistoryChart {
    columns: Vec<Column>,
    /// What did not pass, told by its sign as well as by its colour.
    signs: Vec<Sign>,
    /// Which outcomes there are signs of.
    told: Vec<Tone>,
    /// Lasting changes of the duration.
    shifts: Vec<Flag>,
    step: Hundredths,
    top: Ceiling,
    levels: Vec<Level>,
    count: usize,
}

/// The sign of an outcome below its column.
struct Sign {
    x: Hundredths,
    tone: Tone,
}

/// A percentile as a line across the chart.
struct Level {
    name: &'static str,
    class: &'static str,
    duration: i64,
    y: i64,
}

impl HtmlSafe for HistoryChart {}

impl HistoryChart {
    /// Executions, oldest first.
    pub(crate) fn new(executions: &[ExecutionWithRun], now: Timestamp) -> Self {
        let slots = executions.len().max(SLOTS);
        let mut ran: Vec<i64> =
            executions.iter().map(|each| each.execution.duration).filter(|ms| *ms > 0).collect();
        ran.sort_unstable();
        let top = ceiling(executions.iter().map(|each| each.execution.duration).collect());
        let columns = executions.iter().enumerate().map(|(index, each)| {
            let tone = each.execution.tone();
            Column {
                x: place(slots - executions.len() + index, slots),
                blocks: stack(&[(tone, each.execution.duration)], top.duration),
                title: format!(
                    "{} in {}, run {}, {}",
                    tone.word(),
                    duration(each.execution.duration),
                    each.run.id,
                    relative(each.run.start_time, now)
                ),
                href: Some(format!("/test-run-cases/{}", each.execution.id)),
            }
        });
        let columns: Vec<Column> = columns.collect();
        let ends = columns.iter().zip(executions).map(|(column, each)| (column.x, each.execution.tone()));
        let signs: Vec<Sign> =
            ends.filter(|(_, tone)| *tone != Tone::Passed).map(|(x, tone)| Sign { x, tone }).collect();
        let mut told: Vec<Tone> = Vec::new();
        for sign in &signs {
            if !told.contains(&sign.tone) {
                told.push(sign.tone);
            }
        }
        Self {
            columns,
            signs,
            told,
            shifts: Vec::new(),
            step: Hundredths(10_000 / i64::try_from(slots).unwrap_or(1)),
            levels: levels(&ran, top.duration),
            top,
            count: executions.len(),
        }
    }

    /// The same with lasting changes of the duration.
    #[must_use]
    pub(crate) fn with_shifts(mut self, marks: &[PointMark]) -> Self {
        let slots = self.columns.len().max(SLOTS);
        let first = slots - self.columns.len();
        let flag = |(at, words): &PointMark| Flag { x: place(first + at, slots), title: words.clone() };
        self.shifts = marks.iter().map(flag).collect();
        self
    }
}

/// Median, 90th and 95th percentile of sorted durations.
fn levels(sorted: &[i64], top: i64) -> Vec<Level> {
    let at = |name, class, percent: usize| {
        let duration = nearest_rank(sorted, percent)?;
        Some(Level { name, class, duration, y: (HEIGHT - duration * HEIGHT / top.max(1)).max(0) })
    };
    let all = [at("median", "level-median", 50), at("p90", "level-most", 90), at("p95", "level-high", 95)];
    all.into_iter().flatten().collect()
}

/// A percentile (nearest rank) of sorted values: one that occurred.
pub(crate) fn nearest_rank(sorted: &[i64], percent: usize) -> Option<i64> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

/// What the top of a chart of durations stands for.
struct Ceiling {
    duration: i64,
    /// Whether some executions took longer.
    is_cut: bool,
}

/// The longest duration; where one is far out, the others would vanish, so
/// the chart ends at three times the median.
fn ceiling(mut durations: Vec<i64>) -> Ceiling {
    const FAR_OUT: i64 = 3;
    durations.sort_unstable();
    let longest = durations.last().copied().unwrap_or(0);
    let median = durations.get(durations.len() / 2).copied().unwrap_or(0);
    let enough = median * FAR_OUT;
    if enough > 0 && longest > enough {
        Ceiling { duration: enough, is_cut: true }
    } else {
        Ceiling { duration: longest, is_cut: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_never_leaves_the_chart_and_hides_nothing() {
        let counts = [(Tone::Failed, 1), (Tone::Flaky, 1), (Tone::Skipped, 1), (Tone::Passed, 100_000)];
        let blocks = stack(&counts, 100_003);
        assert!(blocks.iter().all(|block| block.height >= LEAST && block.y >= 0));
        assert_eq!(blocks.last().unwrap().y, 0);
        assert_eq!(blocks[0].y + blocks[0].height, HEIGHT);
    }

    #[test]
    fn percentiles_are_durations_that_occurred() {
        let of = |sorted: &[i64]| levels(sorted, 100).iter().map(|level| level.duration).collect::<Vec<_>>();
        assert_eq!(of(&(1..=100).collect::<Vec<_>>()), [50, 90, 95]);
        assert_eq!(of(&[7]), [7, 7, 7]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn places_are_percentages() {
        assert_eq!(place(0, 30).to_string(), "0.00");
        assert_eq!(place(29, 30).to_string(), "96.66");
        assert_eq!(Hundredths(5).to_string(), "0.05");
    }
}
