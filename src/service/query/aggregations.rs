//! What a grouped query computes of each field.

use std::borrow::Cow;

use engine::Aggregate;
use engine::query::Needs;

use crate::catalog::FieldType;

/// An aggregation of the values of a field in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of numbers.
    Avg,
    /// Sum of numbers.
    Sum,
    /// Minimum of numbers.
    Min,
    /// Maximum of numbers.
    Max,
    /// Number of values of any type.
    Count,
    /// Value of any type with the least timestamp.
    First,
    /// Value of any type with the greatest timestamp.
    Last,
    /// Difference of maximum and minimum.
    Range,
    /// Standard deviation of a sample.
    Stddev,
    /// The 50th percentile.
    Median,
    /// A percentile, with linear interpolation.
    Percentile(Percentile),
    /// Difference of last and first number.
    Delta,
    /// Growth of a counter.
    Increase,
    /// Growth of a counter per second.
    Rate,
    /// Mean of numbers by the time for which they held.
    TimeAvg,
    /// Number of distinct values of any type.
    Distinct,
    /// Share of time for which a boolean was true.
    TrueShare,
}

/// A percentile from 0.1 to 99.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    tenths: u16,
    /// Whether it was sent with a decimal: `p5.0` keeps its name.
    has_decimal: bool,
}

/// All aggregations with a fixed name.
const NAMED: [(&str, Aggregation); 16] = [
    ("avg", Aggregation::Avg),
    ("sum", Aggregation::Sum),
    ("min", Aggregation::Min),
    ("max", Aggregation::Max),
    ("count", Aggregation::Count),
    ("first", Aggregation::First),
    ("last", Aggregation::Last),
    ("range", Aggregation::Range),
    ("stddev", Aggregation::Stddev),
    ("median", Aggregation::Median),
    ("delta", Aggregation::Delta),
    ("increase", Aggregation::Increase),
    ("rate", Aggregation::Rate),
    ("timeAvg", Aggregation::TimeAvg),
    ("distinct", Aggregation::Distinct),
    ("trueShare", Aggregation::TrueShare),
];

impl Aggregation {
    /// The fixed names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.into_iter().map(|(name, _)| name)
    }

    /// A regular expression for the names of percentiles.
    pub const PERCENTILE_PATTERN: &'static str = r"^p[1-9][0-9]?(\.[0-9])?$";

    /// Parses a name.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(name: &str) -> Result<Self, String> {
        let named = NAMED.into_iter().find(|(other, _)| *other == name);
        let percentile = || Percentile::parse(name.strip_prefix('p')?).map(Aggregation::Percentile);
        named
            .map(|(_, aggregation)| aggregation)
            .or_else(percentile)
            .ok_or_else(|| {
                let names: Vec<_> = Self::names().collect();
                format!(
                    "must be {}, or a percentile from p1 to p99.9, not {name:?}",
                    names.join(", ")
                )
            })
    }

    /// The name in the API, as it was parsed.
    pub fn name(self) -> Cow<'static, str> {
        if let Aggregation::Percentile(percentile) = self {
            return Cow::Owned(percentile.name());
        }
        let named = NAMED.into_iter().find(|(_, other)| *other == self);
        Cow::Borrowed(named.map_or("", |(name, _)| name))
    }

    /// Whether fields of this type have it.
    pub fn covers(self, kind: FieldType) -> bool {
        match self {
            Aggregation::Count | Aggregation::Distinct | Aggregation::First | Aggregation::Last => true,
            Aggregation::TrueShare => kind == FieldType::Boolean,
            _ => kind == FieldType::Number,
        }
    }

    /// The quantile that it needs, between 0 and 1.
    pub(super) fn quantile(self) -> Option<f64> {
        match self {
            Aggregation::Median => Some(0.5),
            Aggregation::Percentile(percentile) => Some(f64::from(percentile.tenths) / 1_000.0),
            _ => None,
        }
    }

    /// Adds the statistics that it needs of a field; none if sums and extremes are enough.
    pub(super) fn add_needs(self, needs: &mut Needs) {
        match self {
            Aggregation::First | Aggregation::Last | Aggregation::Delta => needs.ends = true,
            Aggregation::Stddev => needs.moments = true,
            Aggregation::Increase | Aggregation::Rate => needs.growth = true,
            Aggregation::TimeAvg | Aggregation::TrueShare => needs.over_time = true,
            Aggregation::Median | Aggregation::Percentile(_) => needs.values = true,
            Aggregation::Distinct => needs.distinct = true,
            Aggregation::Avg
            | Aggregation::Sum
            | Aggregation::Min
            | Aggregation::Max
            | Aggregation::Count
            | Aggregation::Range => {}
        }
    }

    /// Its value, if sums and extremes are enough.
    pub(super) fn of(self, aggregate: &Aggregate) -> Option<f64> {
        Some(match self {
            Aggregation::Avg => aggregate.avg(),
            Aggregation::Sum => aggregate.sum(),
            Aggregation::Min => aggregate.min,
            Aggregation::Max => aggregate.max,
            Aggregation::Count => aggregate.count as f64,
            // JSON has no infinity.
            Aggregation::Range => (aggregate.max - aggregate.min).min(f64::MAX),
            _ => return None,
        })
    }
}

impl Percentile {
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimal) = match text.split_once('.') {
            Some((whole, decimal)) => (whole, Some(decimal)),
            None => (text, None),
        };
        let is_plain = |digits: &str, most: usize| {
            (1..=most).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
        };
        let is_valid = is_plain(whole, 2)
            && !whole.starts_with('0')
            && decimal.is_none_or(|decimal| is_plain(decimal, 1));
        let number = |digits: &str| digits.parse::<u16>().ok();
        is_valid.then_some(Percentile {
            tenths: 10 * number(whole)? + number(decimal.unwrap_or("0"))?,
            has_decimal: decimal.is_some(),
        })
    }

    fn name(self) -> String {
        match self.has_decimal {
            true => format!("p{}.{}", self.tenths / 10, self.tenths % 10),
            false => format!("p{}", self.tenths / 10),
        }
    }
}

/// The quantiles that these need, between 0 and 1.
pub(super) fn quantiles(aggregations: &[Aggregation]) -> Vec<f64> {
    aggregations
        .iter()
        .filter_map(|aggregation| aggregation.quantile())
        .collect()
}

/// The aggregations of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregations {
    /// A single one: its value is that of the field.
    One(Aggregation),
    /// Several, without duplicates: the field has an object with the value of each.
    Several(Vec<Aggregation>),
}

impl Aggregations {
    /// All of them, in the order in which they were sent.
    pub fn all(&self) -> &[Aggregation] {
        match self {
            Aggregations::One(one) => std::slice::from_ref(one),
            Aggregations::Several(all) => all,
        }
    }

    /// Whether fields of this type have any of them.
    pub fn cover(&self, kind: FieldType) -> bool {
        self.all().iter().any(|aggregation| aggregation.covers(kind))
    }

    /// The statistics that they need of a field of this type.
    pub(super) fn needs(&self, kind: FieldType) -> Needs {
        let mut needs = Needs::default();
        let covering = || self.all().iter().filter(|aggregation| aggregation.covers(kind));
        covering().for_each(|aggregation| aggregation.add_needs(&mut needs));
        needs.newest = needs.ends && covering().all(|aggregation| *aggregation == Aggregation::Last);
        needs
    }

    /// Whether any of them weighs values by the time for which they hold.
    pub(super) fn are_over_time(&self) -> bool {
        FieldType::ALL.into_iter().any(|kind| self.needs(kind).over_time)
    }

    /// Whether sums and extremes are enough for all of them.
    pub(super) fn are_sums(&self) -> bool {
        FieldType::ALL
            .into_iter()
            .all(|kind| self.needs(kind) == Needs::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_they_were_sent() {
        let percentiles = ["p1", "p9", "p50", "p95", "p99", "p99.9", "p5.0", "p1.1"];
        for name in Aggregation::names().chain(percentiles) {
            assert_eq!(Aggregation::parse(name).unwrap().name(), name);
        }
        let quantile = |name: &str| Aggregation::parse(name).unwrap().quantile();
        assert_eq!(quantile("p99.9"), Some(0.999));
        assert_eq!(quantile("p5.0"), quantile("p5"));
        assert_eq!(quantile("median"), quantile("p50"));
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "", "p", "p0", "p0.5", "p05", "p100", "p99.99", "p99.", "p.5", "p-1", "p+1", "p1e1", "P95",
            "p 95", "Avg", "mean", "p٥",
        ] {
            let refused = Aggregation::parse(wrong).unwrap_err();
            assert!(refused.contains("p99.9"), "{wrong:?}: {refused}");
        }
    }

    #[test]
    fn last_values_alone_need_no_older_ones() {
        let number = FieldType::Number;
        let several = |all: &[Aggregation]| Aggregations::Several(all.to_vec());
        assert!(Aggregations::One(Aggregation::Last).needs(number).newest);
        assert!(
            !several(&[Aggregation::Last, Aggregation::Avg])
                .needs(number)
                .newest
        );
        assert!(
            !several(&[Aggregation::Last, Aggregation::First])
                .needs(number)
                .newest
        );
        assert!(
            several(&[Aggregation::Last, Aggregation::Avg])
                .needs(FieldType::String)
                .newest
        );
        assert!(!Aggregations::One(Aggregation::Avg).needs(number).newest);
    }

    #[test]
    fn the_statistics_of_a_field_are_those_that_cover_its_type() {
        let all = Aggregations::Several(NAMED.into_iter().map(|(_, one)| one).collect());
        let of_text = all.needs(FieldType::String);
        assert_eq!(
            of_text,
            Needs {
                ends: true,
                distinct: true,
                ..Needs::default()
            }
        );
        assert!(all.needs(FieldType::Boolean).over_time && !all.needs(FieldType::Boolean).growth);
        assert!(Aggregations::Several(vec![Aggregation::Avg, Aggregation::Range]).are_sums());
        assert!(!Aggregations::One(Aggregation::TrueShare).are_sums());
    }
}
