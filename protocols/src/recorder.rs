//! A sink for tests that keeps what it is given as texts. Tests outside of the crate include this file.

use std::collections::HashMap;

use super::{Family, Field, KeyKind, Refusal, Sample, SampleKind, SeriesKey, Sink, Value};

/// What a body was read into, one text for each call except `series`:
/// `1 cpu{"host":"a"} 1000 usage=0.5 text="x"`, `1 stale …`, `1 not stored`, `1 refused: …`, `family …`.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) events: Vec<String>,
    series: String,
    /// Calls of `series`.
    pub(crate) announced: usize,
    /// Samples that were handed over, refused ones too.
    pub(crate) samples: u32,
    next_number: u32,
    /// The series by their keys, if the sink remembers them.
    pub(crate) known: Option<HashMap<(KeyKind, Vec<u8>), String>>,
    /// How many series were recalled.
    pub(crate) recalled: usize,
}

impl Recorder {
    /// One that remembers series.
    pub(crate) fn remembering() -> Self {
        Self {
            known: Some(HashMap::new()),
            ..Self::default()
        }
    }

    fn count(&mut self, sample: Sample) {
        if sample.number >= self.next_number {
            self.next_number = sample.number + 1;
            self.samples += 1;
        }
    }
}

fn kind(sample: Sample) -> &'static str {
    match sample.kind {
        SampleKind::Value => "",
        SampleKind::Histogram => " histogram",
    }
}

fn owned(SeriesKey { kind, bytes }: SeriesKey<'_>) -> (KeyKind, Vec<u8>) {
    (kind, bytes.to_vec())
}

impl Sink for Recorder {
    fn recall(&mut self, key: SeriesKey<'_>) -> bool {
        let known = self.known.as_ref().and_then(|known| known.get(&owned(key)));
        known.is_some_and(|series| {
            self.recalled += 1;
            self.series.clone_from(series);
            true
        })
    }

    fn remember(&mut self, key: SeriesKey<'_>) {
        if let Some(known) = &mut self.known {
            let before = known.insert(owned(key), self.series.clone());
            assert_eq!(before, None, "what is remembered is recalled");
        }
    }

    fn series(&mut self, source: &str, metadata: &str) {
        self.announced += 1;
        self.series = format!("{source}{metadata}");
    }

    fn point(&mut self, sample: Sample, timestamp_ns: i64, fields: &[Field<'_>]) {
        self.count(sample);
        assert!(!fields.is_empty(), "a point has fields");
        let mut text = format!("{}{} {} {timestamp_ns}", sample.entry, kind(sample), self.series);
        for Field { name, value } in fields {
            text.push_str(&match value {
                Value::Number(number) => {
                    assert!(number.is_finite(), "numbers are finite");
                    format!(" {name}={number}")
                }
                Value::Bool(bool) => format!(" {name}={bool}"),
                Value::Text(text) => format!(" {name}={text:?}"),
            });
        }
        self.events.push(text);
    }

    fn stale(&mut self, sample: Sample, timestamp_ns: i64) {
        self.count(sample);
        self.events.push(format!(
            "{}{} stale {} {timestamp_ns}",
            sample.entry,
            kind(sample),
            self.series
        ));
    }

    fn not_stored(&mut self, sample: Sample) {
        self.count(sample);
        self.events
            .push(format!("{}{} not stored", sample.entry, kind(sample)));
    }

    fn refuse(&mut self, entry: u32, samples: u32, reason: Refusal<'_>) {
        self.samples += samples;
        self.events.push(format!("{entry} refused: {reason}"));
    }

    fn family(&mut self, source: &str, family: Family<'_>) {
        self.events.push(format!(
            "family {source} help={:?} unit={:?}{:?} {}",
            family.help,
            family.unit,
            family.unit_fields,
            family.kind.name()
        ));
    }
}
