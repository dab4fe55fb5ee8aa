//! The records of the log, as described in FORMAT.md of this directory; the first byte is the record's type.

use engine::SeriesRef;
use thiserror::Error;

use crate::catalog::Command;

const COMMAND: u8 = 1;
const INGEST: u8 = 2;
/// An ingest with rows of series.
const INGEST_OF_SERIES: u8 = 3;
/// An ingest with single rows (engine/FORMAT.md), which older programs do not know.
const INGEST_WITH_SINGLE_ROWS: u8 = 4;
/// An ingest with single rows, and with rows of series.
const INGEST_OF_SERIES_WITH_SINGLE_ROWS: u8 = 5;

/// Offset of the first row's sequence within an ingest record. The bucket's intake assigns the sequence and writes it
/// in place.
const FIRST_SEQUENCE_AT: usize = 5;

/// A stored answer, returned again for a repeated idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<B = Box<[u8]>> {
    /// HTTP status: 201 or 207.
    pub status: u16,
    /// The body that was sent first.
    pub body: B,
}

/// An answer within an encoded record.
pub type AnswerView<'a> = Answer<&'a [u8]>;

/// An idempotency key's entry within a record: digests of key and body, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyView<'a> {
    /// Digest of the key.
    pub key: [u8; 16],
    /// Digest of the request's body.
    pub body: [u8; 16],
    /// The answer that was sent.
    pub answer: AnswerView<'a>,
}

/// One ingest request, encoded for the log except for its sequence.
pub struct IngestRecord {
    pub(super) bytes: Vec<u8>,
    /// Offset of the point id in the answer, which contains the sequence.
    id_at: Option<usize>,
    /// Offsets of the ordinals of its series.
    ordinals_at: Vec<usize>,
}

/// A series that rows of an ingest belong to. Table `SERIES_ORDINALS_FROM + n` of the rows is that of the n-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSeries<'a> {
    pub series: SeriesRef,
    /// Its encoded labels, if it may be new.
    pub labels: Option<&'a [u8]>,
}

impl IngestRecord {
    /// Encodes a record of `rows` rows. `id_at` is the offset of a 24-character point id within the answer's body.
    /// `encode_rows` returns whether there are single rows.
    pub fn new(
        bucket: u32,
        created_at_ns: i64,
        rows: u32,
        idempotency: Option<(IdempotencyView<'_>, Option<usize>)>,
        series: &[RecordSeries<'_>],
        encode_rows: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Self {
        let mut bytes = Vec::with_capacity(64 + 16 * rows as usize);
        // The type, once it is known.
        bytes.push(0);
        bytes.extend_from_slice(&bucket.to_le_bytes());
        bytes.extend_from_slice(&0u64.to_le_bytes());
        bytes.extend_from_slice(&created_at_ns.to_le_bytes());
        bytes.extend_from_slice(&rows.to_le_bytes());
        bytes.push(u8::from(idempotency.is_some()));
        let mut id_at = None;
        if let Some((entry, id_in_body)) = idempotency {
            bytes.extend_from_slice(&entry.key);
            bytes.extend_from_slice(&entry.body);
            bytes.extend_from_slice(&entry.answer.status.to_le_bytes());
            bytes.extend_from_slice(&(entry.answer.body.len() as u32).to_le_bytes());
            id_at = id_in_body.map(|at| bytes.len() + at);
            bytes.extend_from_slice(entry.answer.body);
        }
        let mut ordinals_at = Vec::with_capacity(series.len());
        if !series.is_empty() {
            bytes.extend_from_slice(&(series.len() as u32).to_le_bytes());
        }
        for RecordSeries { series, labels } in series {
            ordinals_at.push(bytes.len());
            bytes.extend_from_slice(&series.ordinal.to_le_bytes());
            bytes.extend_from_slice(&series.source.to_le_bytes());
            // One more than the length; 0 for none.
            let length = labels.map_or(0, |labels| labels.len() as u32 + 1);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(labels.unwrap_or_default());
        }
        bytes[0] = match (encode_rows(&mut bytes), series.is_empty()) {
            (false, true) => INGEST,
            (false, false) => INGEST_OF_SERIES,
            (true, true) => INGEST_WITH_SINGLE_ROWS,
            (true, false) => INGEST_OF_SERIES_WITH_SINGLE_ROWS,
        };
        IngestRecord {
            bytes,
            id_at,
            ordinals_at,
        }
    }

    /// Sets the ordinal of the record's series at this position.
    pub fn set_series(&mut self, place: usize, ordinal: u32) {
        let at = self.ordinals_at[place];
        self.bytes[at..at + 4].copy_from_slice(&ordinal.to_le_bytes());
    }

    /// Encoded size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Sets the first row's sequence in the record, and `id` in the answer that it contains.
    pub fn number(&mut self, first_sequence: u64, id: &[u8; 24]) {
        self.bytes[FIRST_SEQUENCE_AT..FIRST_SEQUENCE_AT + 8].copy_from_slice(&first_sequence.to_le_bytes());
        if let Some(at) = self.id_at {
            self.bytes[at..at + id.len()].copy_from_slice(id);
        }
    }
}

/// An ingest record read from the log.
#[derive(Clone, Copy, Debug)]
pub struct IngestView<'a> {
    /// The bucket's ordinal.
    pub bucket: u32,
    /// Sequence of the first row.
    pub first_sequence: u64,
    /// When the server received it, UTC nanoseconds.
    pub created_at_ns: i64,
    pub rows: u32,
    /// The entry of its idempotency key, if the request had one.
    pub idempotency: Option<IdempotencyView<'a>>,
    /// The series of its rows, encoded; see [`IngestView::series`].
    pub encoded_series: &'a [u8],
    /// The encoded rows, for `engine::Store::apply`.
    pub encoded_rows: &'a [u8],
}

/// A record of the log.
#[derive(Debug)]
pub enum Record<'a> {
    /// A change of the catalog.
    Command(Box<Command>),
    /// Points of one ingest request.
    Ingest(IngestView<'a>),
}

/// A record that cannot be decoded although its checksum matches: written by a newer program, or a bug of this one.
#[derive(Debug, Error)]
pub enum RecordError {
    #[error("the log has a record of kind {0}, which this program does not know: start the newer program")]
    UnknownKind(u8),
    /// The record is truncated.
    #[error("the log has a truncated record")]
    Short,
    /// The command cannot be decoded.
    #[error("the log has a command that cannot be decoded: {0}")]
    Command(rmp_serde::decode::Error),
}

pub(super) fn encode_command(command: &Command) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let mut record = vec![COMMAND];
    record.extend_from_slice(&command.encode()?);
    Ok(record)
}

impl<'a> Record<'a> {
    /// Decodes a record.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        match bytes.split_first() {
            Some((&COMMAND, rest)) => Command::decode(rest)
                .map(|command| Record::Command(Box::new(command)))
                .map_err(RecordError::Command),
            Some((kind, rest)) => {
                let view = match *kind {
                    INGEST | INGEST_WITH_SINGLE_ROWS => IngestView::decode(rest, false),
                    INGEST_OF_SERIES | INGEST_OF_SERIES_WITH_SINGLE_ROWS => IngestView::decode(rest, true),
                    kind => return Err(RecordError::UnknownKind(kind)),
                };
                view.map(Record::Ingest).ok_or(RecordError::Short)
            }
            None => Err(RecordError::Short),
        }
    }
}

impl<'a> IngestView<'a> {
    fn decode(mut rest: &'a [u8], has_series: bool) -> Option<Self> {
        let rest = &mut rest;
        let mut view = IngestView {
            bucket: u32::from_le_bytes(take(rest)?),
            first_sequence: u64::from_le_bytes(take(rest)?),
            created_at_ns: i64::from_le_bytes(take(rest)?),
            rows: u32::from_le_bytes(take(rest)?),
            idempotency: match take(rest)? {
                [0] => None,
                _ => Some(IdempotencyView {
                    key: take(rest)?,
                    body: take(rest)?,
                    answer: AnswerView {
                        status: u16::from_le_bytes(take(rest)?),
                        body: {
                            let length = u32::from_le_bytes(take(rest)?) as usize;
                            rest.split_off(..length)?
                        },
                    },
                }),
            },
            encoded_series: &[],
            encoded_rows: &[],
        };
        if has_series {
            let all = *rest;
            let count = u32::from_le_bytes(take(rest)?);
            for _ in 0..count {
                take_series(rest)?;
            }
            view.encoded_series = &all[4..all.len() - rest.len()];
        }
        view.encoded_rows = rest;
        Some(view)
    }

    /// The series that its rows belong to.
    pub fn series(&self) -> impl Iterator<Item = RecordSeries<'a>> + use<'a> {
        let mut rest = self.encoded_series;
        std::iter::from_fn(move || take_series(&mut rest))
    }
}

/// Takes the next series of a record.
fn take_series<'a>(rest: &mut &'a [u8]) -> Option<RecordSeries<'a>> {
    let ordinal = u32::from_le_bytes(take(rest)?);
    let source = u32::from_le_bytes(take(rest)?);
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let labels = match length.checked_sub(1) {
        Some(length) => Some(rest.split_off(..length)?),
        None => None,
    };
    Some(RecordSeries {
        series: SeriesRef { ordinal, source },
        labels,
    })
}

/// Takes the next bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    rest.split_off(..N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(has_single_rows: bool) -> impl FnOnce(&mut Vec<u8>) -> bool {
        move |out| {
            out.extend_from_slice(b"rows");
            has_single_rows
        }
    }

    fn decoded(bytes: &[u8]) -> IngestView<'_> {
        match Record::decode(bytes).unwrap() {
            Record::Ingest(view) => view,
            Record::Command(_) => panic!("an ingest record"),
        }
    }

    fn sample(id_at: Option<usize>) -> Vec<u8> {
        let answer = AnswerView {
            status: 201,
            body: b"{\"_id\":\"________________________\"}",
        };
        let entry = IdempotencyView {
            key: [1; 16],
            body: [2; 16],
            answer,
        };
        let mut record = IngestRecord::new(7, -5, 3, Some((entry, id_at)), &[], rows(false));
        record.number(99, b"000000070000000000000063");
        record.bytes
    }

    #[test]
    fn the_series_of_an_ingest_record_round_trip_with_the_ordinals_that_they_got() {
        let series = |ordinal, labels| RecordSeries {
            series: SeriesRef { ordinal, source: 4 },
            labels,
        };
        let sent = [
            series(0, Some(&b"labels"[..])),
            series(9, None),
            series(0, Some(b"")),
        ];
        let mut record = IngestRecord::new(7, -5, 3, None, &sent, rows(false));
        record.set_series(0, 8);
        record.set_series(2, 7);
        let view = decoded(&record.bytes);
        let found: Vec<_> = view.series().collect();
        assert_eq!(
            found,
            [
                series(8, Some(&b"labels"[..])),
                series(9, None),
                series(7, Some(b""))
            ]
        );
        assert_eq!(view.encoded_rows, b"rows");
        for cut in 0..record.bytes.len() - b"rows".len() {
            assert!(Record::decode(&record.bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn an_ingest_record_with_series_is_laid_out_as_described() {
        let series = SeriesRef {
            ordinal: 0x8000_0005,
            source: 4,
        };
        let labels = Some(&b"ab"[..]);
        let sent = [
            RecordSeries { series, labels },
            RecordSeries { series, labels: None },
        ];
        let body: [&[u8]; 12] = [
            &[7, 0, 0, 0],
            &[0; 8],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0],
            &[0],
            &[2, 0, 0, 0],
            &[5, 0, 0, 0x80, 4, 0, 0, 0],
            &[3, 0, 0, 0],
            b"ab",
            &[5, 0, 0, 0x80, 4, 0, 0, 0],
            &[0, 0, 0, 0],
            b"rows",
        ];
        for (has_single_rows, kind) in [(false, 3), (true, 5)] {
            let record = IngestRecord::new(7, 1, 2, None, &sent, rows(has_single_rows));
            assert_eq!(
                record.bytes,
                [&[kind], &body.concat()[..]].concat(),
                "FORMAT.md: it is stored, and never changes"
            );
            assert_eq!(decoded(&record.bytes).series().collect::<Vec<_>>(), sent);
        }
    }

    #[test]
    fn an_ingest_record_with_single_rows_has_a_type_of_its_own() {
        for (has_single_rows, kind) in [(false, 2), (true, 4)] {
            let record = IngestRecord::new(7, 1, 2, None, &[], rows(has_single_rows));
            assert_eq!(record.bytes[0], kind);
            let view = decoded(&record.bytes);
            assert_eq!((view.encoded_series, view.encoded_rows), (&[][..], &b"rows"[..]));
        }
    }

    #[test]
    fn an_ingest_record_round_trips() {
        let bytes = sample(Some(8));
        let view = decoded(&bytes);
        assert_eq!(
            (view.bucket, view.first_sequence, view.created_at_ns, view.rows),
            (7, 99, -5, 3)
        );
        assert_eq!(view.encoded_rows, b"rows");
        let entry = view.idempotency.unwrap();
        assert_eq!(
            (entry.key, entry.body, entry.answer.status),
            ([1; 16], [2; 16], 201)
        );
        assert_eq!(entry.answer.body, b"{\"_id\":\"000000070000000000000063\"}");
    }

    #[test]
    fn a_truncated_record_is_an_error() {
        let bytes = sample(None);
        let whole = bytes.len() - b"rows".len();
        for cut in 0..whole {
            assert!(Record::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(matches!(
            Record::decode(&[9, 9]),
            Err(RecordError::UnknownKind(9))
        ));
    }
}
