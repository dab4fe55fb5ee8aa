//! Selectors, ranges and subqueries: from samples to values by step.

use std::ops::ControlFlow;

use super::steps::Steps;
use super::{Evaluation, Row, Rows};
use crate::error::Error;
use crate::expr::{At, Expr, Modifiers, RangeSelector, Selector, Subquery};
use crate::functions::over::{Over, OverCall, WindowPlan};
use crate::labels::Labels;
use crate::options::Semantics;
use crate::storage::{Answered, Hints, STALE_MARKER, Samples, TimeRange, Windows, is_stale_marker};
use crate::value::{Point, Series, Value};

/// Storages are asked for windows of whole multiples of this.
const AGGREGATED_MS: i64 = 60_000;

/// What an instant selector gives of a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Value,
    /// Its time, in seconds.
    Time,
}

impl<'a> Evaluation<'a> {
    /// The latest sample of each series at each step, unless it is too old or a stale marker.
    pub(super) fn selected(
        &self,
        selector: &Selector,
        steps: Steps,
        wanted: Wanted,
    ) -> Result<Rows<'a>, Error> {
        let windows = self.windows(selector.modifiers, self.options.lookback_ms, steps);
        let mut values = self.constant(STALE_MARKER, steps)?;
        let mut rows = Rows::new(self.budget);
        self.select(selector, None, windows, |labels, samples| {
            values.fill(STALE_MARKER);
            let mut end = 0;
            for (step, value) in values.iter_mut().enumerate() {
                let until = windows.end_ms(step);
                while end < samples.times.len() && samples.times[end] <= until {
                    end += 1;
                }
                let Some(last) = end.checked_sub(1) else {
                    continue;
                };
                let is_too_old = match self.options.semantics {
                    Semantics::V3 => samples.times[last] <= until - windows.range_ms,
                    Semantics::V2 => samples.times[last] < until - windows.range_ms,
                };
                if !is_too_old && !is_stale_marker(samples.values[last]) {
                    *value = match wanted {
                        Wanted::Value => samples.values[last],
                        Wanted::Time => samples.times[last] as f64 / 1000.0,
                    };
                }
            }
            Row::new(labels, &values).map_or(Ok(()), |row| rows.push(row))
        })?;
        rows.sort_by_labels();
        Ok(rows)
    }

    /// A function over the range of each series at each step. The labels are those of the series, name included.
    pub(super) fn over(
        &self,
        over: Over,
        range: &Expr,
        params: &[Vec<f64>],
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        match range.bare() {
            Expr::Range(range) => self.over_selector(over, range, params, steps),
            Expr::Subquery(subquery) => self.over_subquery(over, subquery, params, steps),
            _ => Err(Error::bad_data("expected a range vector")),
        }
    }

    fn over_selector(
        &self,
        over: Over,
        range: &RangeSelector,
        params: &[Vec<f64>],
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        self.check_steps(steps)?;
        let windows = self.windows(range.selector.modifiers, range.range_ms, steps);
        if let Some(rows) = self.aggregated(over, &range.selector, windows)? {
            return Ok(rows);
        }
        let call = self.over_call(over, windows, params, steps);
        let mut rows = Rows::new(self.budget);
        let mut values = Vec::new();
        let mut fresh = (Vec::new(), Vec::new());
        self.select(&range.selector, Some(over.name()), windows, |labels, samples| {
            call.apply(without_stale_markers(samples, &mut fresh), &mut values)?;
            Row::new(labels, &values).map_or(Ok(()), |row| rows.push(row))
        })?;
        rows.sort_by_labels();
        Ok(rows)
    }

    fn over_subquery(
        &self,
        over: Over,
        subquery: &Subquery,
        params: &[Vec<f64>],
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        self.check_steps(steps)?;
        let windows = self.windows(subquery.modifiers, subquery.range_ms, steps);
        let inner_steps = self.subquery_steps(subquery, windows, steps);
        let call = self.over_call(over, windows, params, steps);
        let (inner, _charge) = self.rows(&subquery.expr, inner_steps)?.take();
        let mut rows = Rows::new(self.budget);
        let (mut times, mut samples, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in inner {
            self.budget.check_time()?;
            times.clear();
            samples.clear();
            for (step, value) in row.present() {
                times.push(inner_steps.time_ms(step));
                samples.push(value);
            }
            let samples = Samples {
                times: &times,
                values: &samples,
            };
            call.apply(samples, &mut values)?;
            if let Some(row) = Row::new(row.labels, &values) {
                rows.push(row)?;
            }
        }
        rows.sort_by_labels();
        Ok(rows)
    }

    fn over_call<'c>(
        &'c self,
        over: Over,
        windows: WindowPlan,
        params: &'c [Vec<f64>],
        steps: Steps,
    ) -> OverCall<'c> {
        OverCall {
            over,
            windows,
            steps: (steps.start_ms, steps.step_ms),
            params,
            is_interrupted: self.budget.is_interrupted(),
        }
    }

    /// The samples or inner values of a range, as an instant query gives them.
    pub(super) fn raw(&self, range: &Expr, steps: Steps) -> Result<Value, Error> {
        let mut charge = self.budget.charge();
        let mut series = Vec::new();
        match range {
            Expr::Range(range) => {
                let windows = self.windows(range.selector.modifiers, range.range_ms, steps);
                self.select(&range.selector, None, windows, |labels, samples| {
                    charge.add(samples.times.len() * size_of::<Point>() + labels.bytes())?;
                    let points = samples.times.iter().zip(samples.values);
                    let points: Vec<Point> = points
                        .filter(|(_, value)| !is_stale_marker(**value))
                        .map(|(time_ms, value)| Point {
                            time_ms: *time_ms,
                            value: *value,
                        })
                        .collect();
                    if !points.is_empty() {
                        series.push(Series { labels, points });
                    }
                    Ok(())
                })?;
            }
            Expr::Subquery(subquery) => {
                let windows = self.windows(subquery.modifiers, subquery.range_ms, steps);
                let inner_steps = self.subquery_steps(subquery, windows, steps);
                let (inner, _charge) = self.rows(&subquery.expr, inner_steps)?.take();
                for row in inner {
                    charge.add(row.values.len() * size_of::<Point>())?;
                    let point = |(step, value)| Point {
                        time_ms: inner_steps.time_ms(step),
                        value,
                    };
                    let points = row.present().map(point).collect();
                    series.push(Series {
                        points,
                        labels: row.labels,
                    });
                }
            }
            _ => return Err(Error::bad_data("expected a range vector")),
        }
        series.sort_by(|left, right| left.labels.cmp(&right.labels));
        Ok(Value::Matrix(series))
    }

    fn windows(&self, modifiers: Modifiers, range_ms: i64, steps: Steps) -> WindowPlan {
        let (first_ms, step_ms) = match modifiers.at {
            Some(At::Time(time_ms)) => (time_ms, 0),
            Some(At::Start) => (self.start_ms, 0),
            Some(At::End) => (self.end_ms, 0),
            None => (steps.start_ms, steps.step_ms),
        };
        WindowPlan {
            first_end_ms: first_ms - modifiers.offset_ms,
            step_ms,
            range_ms,
            count: steps.count,
            semantics: self.options.semantics,
        }
    }

    /// The multiples of the subquery's step from the first window to the end of the last one.
    fn subquery_steps(&self, subquery: &Subquery, windows: WindowPlan, steps: Steps) -> Steps {
        let step_ms = subquery.step_ms.unwrap_or(self.options.subquery_step_ms).max(1);
        let after_ms = windows.after_ms();
        // Rounds towards zero, as Prometheus does.
        let mut start_ms = step_ms * ((windows.first_end_ms - windows.range_ms) / step_ms);
        if start_ms <= after_ms {
            start_ms += step_ms;
        }
        // Windows that are all the same end where the first one does.
        let end_ms = match windows.step_ms {
            0 => windows.first_end_ms,
            _ => steps.end_ms - subquery.modifiers.offset_ms,
        };
        // A part that is the same at every step is evaluated at the first one, even when that lies beyond the range.
        let is_evaluated_once = matches!(subquery.expr, Expr::Invariant(_));
        Steps::new(
            start_ms,
            if is_evaluated_once {
                end_ms.max(start_ms)
            } else {
                end_ms
            },
            step_ms,
        )
    }

    /// Visits the series of a selector with their samples in any of the windows.
    fn select(
        &self,
        selector: &Selector,
        function: Option<&'static str>,
        windows: WindowPlan,
        mut visit: impl FnMut(Labels, Samples<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if windows.count == 0 {
            return Ok(());
        }
        let range = TimeRange {
            after_ms: windows.after_ms(),
            until_ms: windows.end_ms(windows.count - 1),
        };
        let hints = Hints {
            function,
            range_ms: windows.range_ms,
            step_ms: if windows.count == 1 { 0 } else { windows.step_ms },
        };
        let mut outcome = Ok(());
        self.storage
            .select(&selector.matchers, range, &hints, &mut |labels, samples| {
                outcome = self.budget.check_time().and_then(|()| visit(labels, samples));
                if outcome.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        outcome
    }

    /// The values of all windows as the storage has them aggregated in advance; none when it has to be asked for samples.
    fn aggregated(
        &self,
        over: Over,
        selector: &Selector,
        windows: WindowPlan,
    ) -> Result<Option<Rows<'a>>, Error> {
        let Some(function) = over.window_function() else {
            return Ok(None);
        };
        let is_aggregated = |ms: i64| ms % AGGREGATED_MS == 0;
        let is_suitable = self.options.semantics == Semantics::V3
            && windows.count > 0
            && is_aggregated(windows.range_ms)
            && (windows.count == 1 || is_aggregated(windows.step_ms));
        if !is_suitable {
            return Ok(None);
        }
        let asked = Windows {
            function,
            first_end_ms: windows.first_end_ms,
            step_ms: if windows.count == 1 { 0 } else { windows.step_ms },
            range_ms: windows.range_ms,
            count: windows.count,
        };
        let mut rows = Rows::new(self.budget);
        let mut outcome = Ok(());
        let answered = self
            .storage
            .windows(&selector.matchers, &asked, &mut |labels, values| {
                outcome = self.budget.check_time().and_then(|()| {
                    if values.len() != windows.count {
                        return Err(Error::internal(
                            "the storage gave another number of windows than asked for",
                        ));
                    }
                    Row::new(labels, values).map_or(Ok(()), |row| rows.push(row))
                });
                if outcome.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        outcome?;
        if answered == Answered::No {
            return Ok(None);
        }
        rows.sort_by_labels();
        Ok(Some(rows))
    }
}

/// The samples that are values; `fresh` holds them when there are markers between them.
fn without_stale_markers<'s>(samples: Samples<'s>, fresh: &'s mut (Vec<i64>, Vec<f64>)) -> Samples<'s> {
    if !samples.values.iter().any(|value| is_stale_marker(*value)) {
        return samples;
    }
    let (times, values) = fresh;
    times.clear();
    values.clear();
    for (time, value) in samples.times.iter().zip(samples.values) {
        if !is_stale_marker(*value) {
            times.push(*time);
            values.push(*value);
        }
    }
    Samples { times, values }
}
