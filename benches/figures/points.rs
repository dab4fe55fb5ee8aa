//! The points of all figures, resembling a few sensors of a plant: neither constant nor random.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Outcome;

pub const DESCRIPTION: &str = "\
temperature, a walk of 2 decimals, steps uniform over -0.03..=0.03; \
pressure, a walk of 1 decimal, steps uniform over -0.3..=0.3; \
energy, a counter that grows by 0..=3 (uniform): 0.95 B a point of entropy";

pub const FIELDS: [&str; 3] = ["temperature", "pressure", "energy"];
pub const SECOND_NS: i64 = 1_000_000_000;
/// Points of a large request.
pub const BATCH: usize = 1_000;

/// Points of one source, in order.
pub struct Series {
    random: fastrand::Rng,
    hundredths: i32,
    tenths: i32,
    counter: u32,
    timestamp_ns: i64,
    interval_ns: i64,
}

/// A point: timestamp, and for each field its digits and number of decimals.
#[derive(Clone, Copy)]
pub struct Point {
    pub timestamp_ns: i64,
    pub fields: [(i64, u8); 3],
}

impl Series {
    pub fn new(seed: u64, first_ns: i64, interval_ns: i64) -> Self {
        Series {
            random: fastrand::Rng::with_seed(seed),
            hundredths: 2_015,
            tenths: 1_013,
            counter: 12_345,
            timestamp_ns: first_ns,
            interval_ns,
        }
    }

    pub fn next(&mut self) -> Point {
        self.hundredths += self.random.i32(-3..=3);
        self.tenths += self.random.i32(-3..=3);
        self.counter += self.random.u32(0..=3);
        let timestamp_ns = self.timestamp_ns;
        self.timestamp_ns += self.interval_ns;
        let fields = [
            (self.hundredths.into(), 2),
            (self.tenths.into(), 1),
            (self.counter.into(), 0),
        ];
        Point { timestamp_ns, fields }
    }

    pub fn batch(&mut self, bucket: &str, source: &str, points: usize) -> Vec<u8> {
        let entries: Vec<Vec<u8>> = (0..points).map(|_| self.entry(source)).collect();
        Self::batch_of(bucket, &entries)
    }

    /// Body of a batch of these entries.
    pub fn batch_of(bucket: &str, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut body = format!(r#"{{"bucketId":"{bucket}","dataPoints":["#).into_bytes();
        body.extend_from_slice(&entries.join(&b','));
        body.extend_from_slice(b"]}");
        body
    }

    /// Body of a batch of points without timestamps: the server uses the time of arrival, so that it can be sent
    /// repeatedly.
    pub fn batch_of_now(&mut self, bucket: &str, source: &str, points: usize) -> Vec<u8> {
        let entries: Vec<Vec<u8>> = (0..points)
            .map(|_| {
                let mut entry = format!(r#"{{"dataSourceId":"{source}"#).into_bytes();
                self.next().write_values(&mut entry);
                entry
            })
            .collect();
        Self::batch_of(bucket, &entries)
    }

    /// The next point as an entry of a batch.
    pub fn entry(&mut self, source: &str) -> Vec<u8> {
        let mut entry = format!(r#"{{"dataSourceId":"{source}"#).into_bytes();
        self.next().write_after_source(&mut entry);
        entry
    }

    pub fn single(&mut self, bucket: &str, source: &str) -> Vec<u8> {
        let mut body = format!(r#"{{"bucketId":"{bucket}","dataSourceId":"{source}"#).into_bytes();
        self.next().write_after_source(&mut body);
        body
    }
}

impl Point {
    /// The value of a field.
    pub fn value(&self, field: usize) -> f64 {
        let (digits, decimals) = self.fields[field];
        digits as f64 / 10f64.powi(decimals.into())
    }

    /// Writes the part of a point after the source's id.
    fn write_after_source(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(br#"","timestamp":""#);
        body.extend_from_slice(tidewatch::timestamp::format_timestamp_ns(self.timestamp_ns).as_bytes());
        self.write_values(body);
    }

    /// Writes the values and the end of a point.
    fn write_values(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(br#"","values":{"#);
        for (index, name) in FIELDS.iter().enumerate() {
            let decimals = usize::from(self.fields[index].1);
            let comma = if index > 0 { "," } else { "" };
            // Writing to memory does not fail.
            let _ = write!(body, r#"{comma}"{name}":{:.decimals$}"#, self.value(index));
        }
        body.extend_from_slice(b"}}");
    }
}

/// A whole minute this many days ago: batches accept points of at most 30 days.
pub fn days_ago_ns(days: i64) -> Outcome<i64> {
    let now_s = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    Ok((now_s / 60 * 60 - days * 86_400) * SECOND_NS)
}
