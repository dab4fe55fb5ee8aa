//! Labels in metadata, and the series of a request.

use std::sync::atomic::{AtomicU32, Ordering};

use protocols::{KeyKind, SeriesKey};

use super::*;
use crate::catalog::SchemaMode;
use crate::ingest::KnownSeries;
use crate::ingest::tests::{BUCKET, STRICT, source};

fn labels(metadata: &str, dimensions: &Dimensions) -> Vec<(String, String)> {
    let mut writer = LabelsWriter::default();
    read_labels(metadata, dimensions, &mut writer).unwrap();
    let mut encoded = Vec::new();
    writer.encode(&mut encoded);
    let labels = Labels::decode(&encoded).unwrap();
    let pairs = labels.iter();
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn text_of(number: &str) -> String {
    let found = labels(&format!("{{\"n\":{number}}}"), &Dimensions::All);
    found
        .into_iter()
        .next()
        .map(|(_, value)| value)
        .unwrap_or_default()
}

#[test]
fn one_number_has_one_text_and_long_ids_stay_apart() {
    for (number, text) in [
        ("1", "1"),
        ("1.0", "1"),
        ("2.50", "2.5"),
        ("1e3", "1000"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("-5", "-5"),
        ("9007199254740993", "9007199254740993"),
        ("90071992547409931234567890", "90071992547409931234567890"),
        ("0.1", "0.1"),
    ] {
        assert_eq!(text_of(number), text, "{number}");
    }
    // Of any length, unlike strings.
    let long = "7".repeat(2_000);
    assert_eq!(text_of(&long), long);
}

#[test]
fn strings_numbers_and_booleans_are_dimensions_and_the_last_member_of_a_name_counts() {
    let metadata = format!(
        r#"{{"b":true,"a":"x","n":null,"o":{{"a":1}},"l":[1],"long":"{}","fits":"{}","a":"y","c":"z","c":null,"":"e"}}"#,
        "v".repeat(1_025),
        "v".repeat(1_024)
    );
    let found = labels(&metadata, &Dimensions::All);
    let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["", "a", "b", "fits"]);
    assert_eq!((found[1].1.as_str(), found[2].1.as_str()), ("y", "true"));
    let named = Dimensions::Named(vec!["a".into(), "o".into(), "a.b".into()]);
    assert_eq!(labels(&metadata, &named), [("a".to_owned(), "y".to_owned())]);
    assert_eq!(
        labels(r#"{"a.b":1,"a":{"b":2}}"#, &named),
        [("a.b".to_owned(), "1".to_owned())]
    );
}

/// Knows one series of each source, and counts how often it is asked.
struct OneKnown {
    digest: Digest,
    version: Option<u64>,
    asked: AtomicU32,
}

impl OneKnown {
    fn new(digest: Digest, version: Option<u64>) -> Self {
        OneKnown {
            digest,
            version,
            asked: AtomicU32::new(0),
        }
    }
}

impl FindSeries for OneKnown {
    fn find(&self, _: u32, digest: &Digest) -> Result<Option<u32>, ServiceError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok((*digest == self.digest).then_some(SERIES_ORDINALS_FROM + 70))
    }

    fn version(&self) -> Option<u64> {
        self.version
    }

    fn fullest(&self, _: u32) -> Result<Option<DimensionValues>, ServiceError> {
        Ok(None)
    }
}

#[test]
fn the_series_of_a_key_is_looked_up_again_in_another_version_of_the_index() {
    let source = source(STRICT, BUCKET, SchemaMode::Strict, &[]);
    let mut request = SeriesOfRequest::default();
    let text = r#"{"a":"1"}"#;
    let digest = request.digest(&source, &Dimensions::All, Some(text));
    let series = KnownSeries {
        source: "m",
        metadata: text,
    };
    request.keys.keep(SeriesKey::new(KeyKind::Line, b"m,a=1"), series);
    for (version, asked) in [(Some(1), 1), (Some(1), 0), (Some(2), 1), (None, 1), (Some(2), 0)] {
        let find = OneKnown::new(digest, version);
        assert_eq!(
            request.keys.get(SeriesKey::new(KeyKind::Line, b"m,a=1")),
            Some(series)
        );
        let table = request.table_of_key(&source, &find, &Dimensions::All, Some(text));
        assert_eq!(table.unwrap(), SERIES_ORDINALS_FROM);
        assert_eq!(find.asked.load(Ordering::Relaxed), asked, "{version:?}");
        let taken = request.take().unwrap();
        assert_eq!(
            (taken[0].digest, taken[0].ordinal),
            (digest, Some(SERIES_ORDINALS_FROM + 70))
        );
        request.clear(None);
    }
}

#[test]
fn only_series_that_exist_or_have_points_can_end() {
    let source = source(STRICT, BUCKET, SchemaMode::Strict, &[]);
    let mut request = SeriesOfRequest::default();
    let (known, new) = (Some(r#"{"a":"1"}"#), Some(r#"{"a":"2"}"#));
    let find = OneKnown::new(request.digest(&source, &Dimensions::All, known), None);
    let ended = |request: &mut SeriesOfRequest, metadata| {
        request.known_table(&source, &find, &Dimensions::All, metadata)
    };
    assert_eq!(ended(&mut request, new), None);
    assert_eq!(ended(&mut request, known), Some(SERIES_ORDINALS_FROM));
    let table = request.table(&source, &find, &Dimensions::All, new).unwrap();
    assert_eq!(table, SERIES_ORDINALS_FROM + 1);
    assert_eq!(ended(&mut request, new), Some(table), "it has a point");
    assert_eq!(ended(&mut request, known), Some(SERIES_ORDINALS_FROM));
    let taken = request.take().unwrap();
    let ordinals: Vec<Option<u32>> = taken.iter().map(|series| series.ordinal).collect();
    assert_eq!(ordinals, [Some(SERIES_ORDINALS_FROM + 70), None]);
    assert!(taken[0].labels.is_empty() && !taken[1].labels.is_empty());
}
