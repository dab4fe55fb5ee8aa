//! `zscore`: the newest number compared with the mean and standard deviation of the numbers before it.

use serde_json::json;

use super::parameters::Parameters;
use super::row::no_value;
use super::{Alert, Finding, Row, number};

const LIMIT_DEFAULT: f64 = 3.0;
const POINTS_MIN_DEFAULT: u64 = 30;
/// A sample standard deviation needs at least two numbers.
const POINTS_MIN_LEAST: u32 = 2;

/// Parameters `limit`, `minPoints`. Met if the newest number is more than `limit` sample standard deviations from the
/// mean of the others; at least `minPoints` others are required. If the others are constant, any different number is
/// met and the same number is not, so that a jump of a constant signal is reported.
#[derive(Clone, Debug)]
pub struct ZScore {
    limit: f64,
    points_min: u64,
    newest: Option<(f64, Row)>,
    others: Sample,
}

impl ZScore {
    pub fn parse(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let limit = parameters.optional_positive("limit")?;
        let points_min = parameters.optional_count("minPoints", POINTS_MIN_LEAST)?;
        Ok(Self {
            limit: limit.unwrap_or(LIMIT_DEFAULT),
            points_min: points_min.unwrap_or(POINTS_MIN_DEFAULT),
            newest: None,
            others: Sample::default(),
        })
    }

    pub fn add(&mut self, row: Row) {
        let Some(number) = row.number() else { return };
        if let Some((before, _)) = self.newest.replace((number, row)) {
            self.others.add(before);
        }
    }

    pub fn finish(self, rows: u64) -> Finding {
        let Some((value, row)) = self.newest else {
            return Finding::inconclusive(no_value(rows, "number"));
        };
        let Sample { count, mean, .. } = self.others;
        if count < self.points_min {
            return Finding::inconclusive(format!(
                "{count} numbers before the newest, minPoints asks for {}",
                self.points_min
            ));
        }
        let deviation = self.others.deviation();
        if !(deviation.is_finite() && mean.is_finite()) {
            return Finding::inconclusive("the numbers are too large for a standard deviation");
        }
        let zscore = match (value - mean, deviation == 0.0) {
            (0.0, _) => 0.0,
            (distance, false) => distance / deviation,
            (distance, true) => distance.signum() * f64::INFINITY,
        };
        let met = zscore.abs() > self.limit;
        let reach = self.limit * deviation;
        let alert = Alert {
            current_value: number(value),
            threshold: json!([number(mean - reach), number(mean + reach)]),
            operator: "outside",
        };
        Finding::decided(met, row, Some(alert))
            .with("points", count)
            .with("mean", number(mean))
            .with("deviation", number(deviation))
            // Infinite if the others are constant; infinity becomes null in JSON.
            .with("zscore", number(zscore))
    }
}

/// Mean and sum of squared deviations, updated incrementally (Welford 1962). Avoids the loss of precision of a sum of
/// squares.
#[derive(Clone, Debug, Default)]
struct Sample {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, number: f64) {
        self.count += 1;
        let before = number - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (number - self.mean);
    }

    fn deviation(&self) -> f64 {
        (self.squares / (self.count as f64 - 1.0)).sqrt()
    }
}
