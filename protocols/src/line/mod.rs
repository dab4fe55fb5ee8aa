//! InfluxDB line protocol: `measurement,tag=value field=value,field="text" timestamp`.
//!
//! The measurement is the source, tags are metadata, fields are fields. A line whose measurement and tags repeat those of
//! the line before, byte for byte, belongs to the series that the sink has already; those of earlier bodies may be recalled
//! by the sink.
//!
//! Source: the InfluxDB v2 reference "Line protocol", and of InfluxDB 1.x the precisions `n`, `u`, `m` and `h`.
//!
//! - `precision`: units of timestamps. `scan`: where tokens, strings and lines end. `key`: measurement and tags.
//!   `names`: of tags and fields. `fields`: fields, their values and the timestamp.
//!   `decimal`: numbers of the usual length.

mod decimal;
mod fields;
mod key;
mod names;
mod precision;
mod scan;
#[cfg(test)]
mod tests;

pub use precision::{Dialect, Precision};

use crate::Refusal;
use crate::sink::{Sample, SampleKind, Sink};
use fields::Fields;
use key::Key;

/// Fields of a line: as many as a schema can have.
pub const FIELDS_MAX: usize = 256;

/// Reads all lines of a body. `now_ns` is the timestamp of lines without one.
///
/// An entry is named by the number of its first physical line, from 1; blank lines, comments and the lines inside of a
/// string count.
pub fn parse(body: &[u8], precision: Precision, now_ns: i64, sink: &mut impl Sink) {
    let mut key = Key::new();
    let mut fields = Fields::default();
    let (mut at, mut line, mut number) = (0, 1, 0);
    while at < body.len() {
        let start = scan::skip_blanks(body, at);
        if let Some(next) = scan::line_end(body, start) {
            (at, line) = (next, line + 1);
            continue;
        }
        if body[start] == b'#' {
            (at, line) = (scan::next_line(body, start), line + 1);
            continue;
        }
        let entry = Entry {
            body,
            precision,
            now_ns,
        };
        let read = entry.parse(start, &mut key, &mut fields, sink);
        let (next, newlines) = match read.and_then(|read| key.announce(sink).map(|()| read)) {
            Ok(read) => {
                let sample = Sample {
                    entry: line,
                    number,
                    kind: SampleKind::Value,
                };
                sink.point(sample, read.timestamp_ns, fields.of_line());
                (read.next, read.newlines)
            }
            Err(refusal) => {
                sink.refuse(line, 1, refusal);
                let next = scan::next_entry(body, start);
                (next, scan::newlines(&body[start..next]))
            }
        };
        (at, line, number) = (next, line + newlines, number + 1);
    }
}

/// The name of an entry in an answer.
pub fn entry_name(entry: u32) -> String {
    format!("line {entry}")
}

/// What every entry of a body has in common.
struct Entry<'a> {
    body: &'a [u8],
    precision: Precision,
    now_ns: i64,
}

/// An entry that was read.
struct Read {
    timestamp_ns: i64,
    /// Where the next line begins.
    next: usize,
    /// Physical lines of this one.
    newlines: u32,
}

impl<'a> Entry<'a> {
    fn parse(
        &self,
        start: usize,
        key: &mut Key<'a>,
        fields: &mut Fields<'a>,
        sink: &mut impl Sink,
    ) -> Result<Read, Refusal<'a>> {
        let at = key.read(self.body, start, sink)?;
        fields::read(self, at, fields)
    }
}
