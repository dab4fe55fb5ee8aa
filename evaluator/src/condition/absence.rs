//! `absence`: no data arrived. The only kind for which an empty window is meaningful.

use super::parameters::Parameters;
use super::row::{SECOND_NS, parse_timestamp};
use super::{Alert, Finding, Row, Window, number};

/// Parameter `maxGapSeconds`: met if the newest row is older than that, measured from the window's end. Without the
/// parameter, met if the window has no rows.
#[derive(Clone, Debug)]
pub struct Absence {
    gap_seconds_max: Option<f64>,
    newest: Option<Row>,
}

impl Absence {
    pub fn parse(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        Ok(Self {
            gap_seconds_max: parameters.optional_positive("maxGapSeconds")?,
            newest: None,
        })
    }

    pub fn add(&mut self, row: Row) {
        if row.value.is_some() {
            self.newest = Some(row);
        }
    }

    pub fn finish(self, window: &Window) -> Finding {
        let length = window
            .start_ns
            .zip(window.end_ns)
            .map(|(start, end)| seconds(end - start));
        match (self.newest, self.gap_seconds_max) {
            (None, None) => met(None, length, length),
            (Some(row), None) => Finding::decided(false, row, None),
            (None, Some(gap_max)) => match length {
                // Any earlier row is older than the window's length.
                Some(length) if length >= gap_max => met(None, Some(length), Some(gap_max)),
                Some(_) => Finding::inconclusive(
                    "no rows in the window, and it is shorter than maxGapSeconds: make windowSeconds longer",
                ),
                None => Finding::inconclusive("the query has no time range"),
            },
            (Some(row), Some(gap_max)) => evaluate_gap(row, gap_max, window),
        }
    }
}

/// For a raw row, the time of the last point is exact. For a group it is only known to be within the group.
fn evaluate_gap(row: Row, gap_max: f64, window: &Window) -> Finding {
    let (Some(end), Some(from)) = (window.end_ns, parse_timestamp(&row.timestamp)) else {
        return Finding::inconclusive("the end of the window or the newest timestamp cannot be read");
    };
    let longest = seconds(end.saturating_sub(from).max(0));
    let shortest = seconds(end.saturating_sub(from.saturating_add(window.row_ns)).max(0));
    if shortest > gap_max {
        return met(Some(row), Some(shortest), Some(gap_max));
    }
    let finding = if longest <= gap_max {
        Finding::decided(false, row, None)
    } else {
        let reason = "the newest group is too long to tell when its last point came: group finer";
        Finding {
            row: Some(row),
            ..Finding::inconclusive(reason)
        }
    };
    finding.with("gapSeconds", number(longest))
}

/// `silent` and `limit` are in seconds. Without a known window length the alert has no values.
fn met(row: Option<Row>, silent: Option<f64>, limit: Option<f64>) -> Finding {
    let alert = silent.zip(limit).map(|(silent, limit)| Alert {
        current_value: number(silent),
        threshold: number(limit),
        operator: "absent_for",
    });
    Finding::decided(true, row, alert)
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / SECOND_NS as f64
}
