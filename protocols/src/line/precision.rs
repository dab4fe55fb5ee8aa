//! Units of timestamps.

/// The unit of a body's timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 1 ns.
    #[default]
    Nanoseconds,
    /// 1,000 ns.
    Microseconds,
    /// 1,000,000 ns.
    Milliseconds,
    /// 1 s.
    Seconds,
    /// 60 s.
    Minutes,
    /// 3,600 s.
    Hours,
}

/// Whose names of precisions are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// InfluxDB 1.x, `/write`: also `n`, `u`, `m` and `h`.
    V1,
    /// InfluxDB 2.x, `/api/v2/write`.
    V2,
}

impl Precision {
    /// Reads the parameter `precision`; "" is the default. `None` is any other text.
    pub fn parse(text: &str, dialect: Dialect) -> Option<Self> {
        Some(match (text, dialect) {
            ("" | "ns", _) | ("n", Dialect::V1) => Self::Nanoseconds,
            ("us", _) | ("u", Dialect::V1) => Self::Microseconds,
            ("ms", _) => Self::Milliseconds,
            ("s", _) => Self::Seconds,
            ("m", Dialect::V1) => Self::Minutes,
            ("h", Dialect::V1) => Self::Hours,
            _ => return None,
        })
    }

    /// Its unit in nanoseconds.
    pub const fn unit_ns(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
        }
    }
}
