//! Small storages that a test writes out, and answers as short texts.

use promql::{Error, Labels, Limits, MemoryStorage, Options, Query, STALE_MARKER, Value, json};

pub const LIMITS: Limits<'static> = Limits {
    memory_bytes_max: 16 << 20,
    is_interrupted: &|| false,
};

/// Series with a sample every 15 s from 1970 on. Each is `name{a="b"} 1 2 _ stale`, where `_` is no sample.
pub fn loaded(series: &[&str]) -> MemoryStorage {
    let mut storage = MemoryStorage::default();
    for text in series {
        let end = text
            .rfind('}')
            .map_or_else(|| text.find(' ').unwrap(), |brace| brace + 1);
        let (selector, values) = text.split_at(end);
        let matchers = promql::params::selector(selector).unwrap();
        let labels = Labels::from_pairs(matchers.iter().map(|matcher| (matcher.name(), matcher.value())));
        for (at, value) in values.trim_start().split(' ').enumerate() {
            let value = match value {
                "_" => continue,
                "stale" => STALE_MARKER,
                value => value.parse().unwrap(),
            };
            storage.push(&labels, at as i64 * 15_000, value);
        }
    }
    storage
}

/// The answer to an instant query, at a time in seconds.
pub fn instant(storage: &MemoryStorage, query: &str, seconds: i64) -> Result<String, Error> {
    let query = Query::parse(query, Options::default())?;
    query
        .instant(storage, seconds * 1_000, LIMITS)
        .map(|value| short(&value))
}

/// The answer to a range query, with times and step in seconds.
pub fn range(
    storage: &MemoryStorage,
    query: &str,
    (start, end, step): (i64, i64, i64),
) -> Result<String, Error> {
    let query = Query::parse(query, Options::default())?;
    let value = query.range(storage, start * 1_000, end * 1_000, step * 1_000, LIMITS)?;
    Ok(short(&value))
}

/// `{a="b"} 1 2; {} 3`: labels, then values.
fn short(value: &Value) -> String {
    let number = |value: f64| format!("{value}");
    match value {
        Value::Scalar(point) => number(point.value),
        Value::String { text, .. } => text.clone(),
        Value::Vector(samples) => {
            let short = samples
                .iter()
                .map(|sample| format!("{} {}", sample.labels, number(sample.point.value)));
            short.collect::<Vec<_>>().join("; ")
        }
        Value::Matrix(series) => {
            let short = series.iter().map(|series| {
                let values = series.points.iter().map(|point| number(point.value));
                format!("{} {}", series.labels, values.collect::<Vec<_>>().join(" "))
            });
            short.collect::<Vec<_>>().join("; ")
        }
    }
}

/// The JSON of an answer.
pub fn written(value: &Value) -> String {
    let mut body = Vec::new();
    json::write_value(value, usize::MAX, &mut body);
    String::from_utf8(body).unwrap()
}
