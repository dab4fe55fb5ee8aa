//! The functions of PromQL over numbers: pure, without selections, labels or budgets.

pub(crate) mod calendar;
pub(crate) mod counter;
pub(crate) mod histogram;
pub(crate) mod kahan;
pub(crate) mod map;
pub(crate) mod natural;
pub(crate) mod over;
pub(crate) mod regression;
pub(crate) mod sliding;
pub(crate) mod statistics;

use calendar::Calendar;
use map::Map;
use over::Over;

use crate::expr::Type;

/// Ascending or descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// A function by what it needs for its evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// One value from the samples of a range.
    Over(Over),
    /// One value from one value.
    Map(Map),
    /// A part of the date of a value, which is seconds since 1970.
    Calendar(Calendar),
    Absent,
    AbsentOverTime,
    Scalar,
    Vector,
    Time,
    Pi,
    Timestamp,
    Sort(Order),
    SortByLabel(Order),
    LabelReplace,
    LabelJoin,
    HistogramQuantile,
    HistogramQuantiles,
    HistogramFraction,
    /// Functions of native histograms: without any there is no result.
    NativeHistogram,
    Info,
    QueryStart,
    QueryEnd,
    QueryRange,
    QueryStep,
    MinOf,
    MaxOf,
}

impl Function {
    /// The function of a name; none when it is not supported.
    pub(crate) fn named(name: &str) -> Option<Function> {
        if let Some(over) = Over::named(name) {
            return Some(Function::Over(over));
        }
        if let Some(map) = Map::named(name) {
            return Some(Function::Map(map));
        }
        if let Some(calendar) = Calendar::named(name) {
            return Some(Function::Calendar(calendar));
        }
        Some(match name {
            "absent" => Function::Absent,
            "absent_over_time" => Function::AbsentOverTime,
            "scalar" => Function::Scalar,
            "vector" => Function::Vector,
            "time" => Function::Time,
            "pi" => Function::Pi,
            "timestamp" => Function::Timestamp,
            "sort" => Function::Sort(Order::Ascending),
            "sort_desc" => Function::Sort(Order::Descending),
            "sort_by_label" => Function::SortByLabel(Order::Ascending),
            "sort_by_label_desc" => Function::SortByLabel(Order::Descending),
            "label_replace" => Function::LabelReplace,
            "label_join" => Function::LabelJoin,
            "histogram_quantile" => Function::HistogramQuantile,
            "histogram_quantiles" => Function::HistogramQuantiles,
            "histogram_fraction" => Function::HistogramFraction,
            "histogram_avg" | "histogram_count" | "histogram_sum" | "histogram_stddev"
            | "histogram_stdvar" => Function::NativeHistogram,
            "info" => Function::Info,
            "start" => Function::QueryStart,
            "end" => Function::QueryEnd,
            "range" => Function::QueryRange,
            "step" => Function::QueryStep,
            "min_of" => Function::MinOf,
            "max_of" => Function::MaxOf,
            _ => return None,
        })
    }

    /// The type of its value.
    pub(crate) fn returns(self) -> Type {
        match self {
            Function::Scalar
            | Function::Time
            | Function::Pi
            | Function::QueryStart
            | Function::QueryEnd
            | Function::QueryRange
            | Function::QueryStep
            | Function::MinOf
            | Function::MaxOf => Type::Scalar,
            _ => Type::Vector,
        }
    }

    /// Whether its value depends on the time of the step, even when its arguments do not.
    pub(crate) fn depends_on_time(self) -> bool {
        matches!(
            self,
            Function::Over(Over::PredictLinear)
                | Function::Calendar(_)
                | Function::Time
                | Function::Timestamp
        )
    }
}
