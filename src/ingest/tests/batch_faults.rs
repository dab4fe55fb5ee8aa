//! Every fault of a batch: of the whole body, and of single entries, which do not affect the others.

use super::*;

const GOOD: &str = r#"{"dataSourceId":"000000000000000000000001","values":{"t":1}}"#;

fn whole(body: &str) -> Vec<String> {
    let (result, rows) = batch(body, &mut Sources::new());
    assert_eq!(rows.rows(), 0, "{body:.80}");
    faults(result)
}

#[test]
fn faults_outside_the_entries_refuse_the_whole_body() {
    let thousand = vec![GOOD; 1_000].join(",");
    let many = format!("[{thousand},3]");
    let id_needed = "bucketId: is required";
    for (members, faults) in [
        ("", vec![id_needed, "dataPoints: is required"]),
        (
            r#""bucketId":3,"dataPoints":{}"#,
            vec![
                "bucketId: must be a string, not a number",
                "dataPoints: must be an array, not an object",
            ],
        ),
        (
            r#""bucketId":"B1","dataPoints":[]"#,
            vec![
                "bucketId: must be an id of 24 lowercase hex characters",
                "dataPoints: must have at least one entry",
            ],
        ),
        (r#""dataPoints":[1,2]"#, vec![id_needed]),
        (
            &format!(r#""dataPoints":{many}"#),
            vec![id_needed, "dataPoints: must have at most 1000 entries, not 1001"],
        ),
        (
            &format!(r#""bucketId":"{BUCKET}","dataPoints":{many}"#),
            vec!["dataPoints: must have at most 1000 entries, not 1001"],
        ),
        (
            &format!(r#""dataPoints":{many},"bucketId":"{BUCKET}""#),
            vec!["dataPoints: must have at most 1000 entries, not 1001"],
        ),
        (
            &format!(r#""bucketId":"{BUCKET}","dataPoints":[{GOOD}],"dataPoints":null"#),
            vec!["dataPoints: must be an array, not null"],
        ),
    ] {
        assert_eq!(whole(&format!("{{{members}}}")), faults);
    }
    assert_eq!(whole("[1]"), [": the body must be an object, not an array"]);
    let (result, rows) = batch(&entries(&[&thousand]), &mut Sources::new());
    assert_eq!((ready(result).entries, rows.rows()), (1_000, 1_000));
}

#[test]
fn a_faulty_entry_is_named_and_affects_no_other() {
    let with = |source: &str, rest: &str| format!(r#"{{"dataSourceId":"{source}",{rest}}}"#);
    let values = r#""values":{"t":1}"#;
    let cases = [
        ("3".to_owned(), "must be an object, not a number"),
        ("[]".to_owned(), "must be an object, not an array"),
        (format!("{{{values}}}"), "dataSourceId: is required"),
        (
            format!(r#"{{"dataSourceId":9,{values}}}"#),
            "dataSourceId: must be a string, not a number",
        ),
        (
            with("xyz", values),
            "dataSourceId: must be an id of 24 lowercase hex characters",
        ),
        // One character more, and one less, than the source of the previous entry.
        (
            with("0000000000000000000000010", values),
            "dataSourceId: must be an id of 24 lowercase hex characters",
        ),
        (
            with("00000000000000000000001", values),
            "dataSourceId: must be an id of 24 lowercase hex characters",
        ),
        (
            with(UNKNOWN, values),
            "dataSourceId: no data source 0000000000000000000000ff in this bucket",
        ),
        (
            with(FOREIGN, values),
            "dataSourceId: no data source 000000000000000000000004 in this bucket",
        ),
        (
            with(INACTIVE, values),
            "dataSourceId: data source 000000000000000000000003 is inactive and takes no data",
        ),
        (
            with(STRICT, &format!(r#""timestamp":1767225600,{values}"#)),
            "timestamp: must be an ISO 8601 string, not a number",
        ),
        (
            with(STRICT, &format!(r#""timestamp":"20260101",{values}"#)),
            "timestamp: must be an ISO 8601 date-time such as 2026-01-31T12:00:00Z",
        ),
        (
            with(STRICT, &format!(r#""timestamp":"2025-12-01",{values}"#)),
            "timestamp: is too old: the oldest accepted now is 2025-12-02T00:00:00Z",
        ),
        (with(STRICT, r#""x":1"#), "values: is required"),
        (
            with(STRICT, r#""values":7"#),
            "values: must be an object, not a number",
        ),
        (
            with(STRICT, r#""values":{}"#),
            "values: must have at least one field that is not null",
        ),
        (
            with(STRICT, r#""values":{"t":null}"#),
            "values: must have at least one field that is not null",
        ),
        (
            with(STRICT, r#""values":{"t":true}"#),
            "values: field \"t\" is declared number, not a boolean",
        ),
        (
            with(STRICT, r#""values":{"p":1,"t":[[1]]}"#),
            "values: field \"t\" is declared number, not an array",
        ),
        (
            with(STRICT, r#""values":{"t":1e400}"#),
            "values: field \"t\" must be a finite number of double precision",
        ),
        (
            with(STRICT, r#""values":{"t":1,"u":null}"#),
            r#"values: field "u" is not declared (declared: t, p, on, state, a":1,"t), but null was sent"#,
        ),
        (
            with(STRICT, &format!(r#"{values},"metadata":3"#)),
            "metadata: must be an object, not a number",
        ),
        (
            with(
                STRICT,
                &format!(r#"{values},"metadata":{{"k":"{}"}}"#, "x".repeat(16_384)),
            ),
            "metadata: must be at most 16384 bytes as sent, not 16392",
        ),
    ];
    let mut all = vec![GOOD];
    for (entry, _) in &cases {
        all.extend([entry.as_str(), GOOD]);
    }
    for body in [
        entries(&all),
        format!(r#"{{"dataPoints":[{}],"bucketId":"{BUCKET}"}}"#, all.join(",")),
        format!(
            r#"{{"bucketId":"{ELSEWHERE}","dataPoints":[{}],"bucketId":"{BUCKET}"}}"#,
            all.join(",")
        ),
    ] {
        let mut sources = Sources::new();
        let (result, rows) = batch(&body, &mut sources);
        let outcome = ready(result);
        assert_eq!(outcome.entries as usize, all.len());
        assert_eq!(rows.rows() as usize, cases.len() + 1);
        let expected: Vec<_> = (0..)
            .zip(&cases)
            .map(|(case, (_, error))| (2 * case + 1, *error))
            .collect();
        let errors: Vec<_> = outcome
            .errors
            .iter()
            .map(|error| (error.index, error.error.as_str()))
            .collect();
        assert_eq!(errors, expected);
        let good = super::expected(|rows| {
            for _ in 0..=cases.len() {
                rows.begin(1);
                rows.number(0, 1.0, 0);
                rows.commit(NOW_NS);
            }
        });
        assert_eq!(encoded(&rows), good);
    }
}

#[test]
fn one_message_lists_all_faults_of_an_entry() {
    let entry = format!(
        r#"{{"dataSourceId":"{STRICT}","timestamp":"2020-01-01","values":{{"t":"x","on":1e999,"zz":1}},"metadata":[]}}"#
    );
    let outcome = ready(batch(&entries(&[&entry]), &mut Sources::new()).0);
    let error = &outcome.errors[0].error;
    for piece in [
        "timestamp: is too old",
        "\"t\" is declared",
        "\"on\" must be a finite",
        "\"on\" is declared",
        "\"zz\" is not",
        "metadata: ",
    ] {
        assert!(error.contains(piece), "{piece} in {error}");
    }
    assert_eq!(error.matches("; ").count(), 5, "{error}");
}

#[test]
fn the_size_of_an_answer_is_bounded_by_that_of_the_body() {
    let fields: Vec<String> = (0..20_000).map(|field| format!("\"{field}\":1")).collect();
    let entry = format!(
        r#"{{"dataSourceId":"{STRICT}","values":{{{}}}}}"#,
        fields.join(",")
    );
    let outcome = ready(batch(&entries(&[&entry]), &mut Sources::new()).0);
    let error = &outcome.errors[0].error;
    assert!(error.len() < 10_000, "{} bytes", error.len());
    assert!(error.ends_with("more faults"), "{error:?}");
}

#[test]
fn malformed_json_anywhere_refuses_the_whole_body() {
    let deep = "[".repeat(100_000);
    for broken in [
        "{",
        r#"{"dataSourceId":"000000000000000000000001","values":{"t":1}"#,
        r#"{"dataSourceId":"000000000000000000000001","values":{"t":01}}"#,
        r#"{"dataSourceId":"000000000000000000000001","values":{"t":1,}}"#,
        r#"{"dataSourceId":"000000000000000000000001","values":{"zz":tru}}"#,
        r#"{"values":{"t":1.},"dataSourceId":"000000000000000000000001"}"#,
        r#"{"x":"\q"}"#,
        &format!(r#"{{"x":{deep}}}"#),
        &format!(r#"{{"dataSourceId":"000000000000000000000001","values":{{"t":{deep}}}}}"#),
        &deep,
    ] {
        for body in [
            entries(&[GOOD, broken, GOOD]),
            format!(r#"{{"dataPoints":[{GOOD},{broken}],"bucketId":"{BUCKET}"}}"#),
            format!(
                r#"{{"bucketId":"{BUCKET}","dataPoints":[{}{broken}]}}"#,
                format!("{GOOD},").repeat(1_000)
            ),
        ] {
            let (result, rows) = batch(&body, &mut Sources::new());
            assert!(is_malformed(&result), "{broken:.80}: {result:?}");
            assert_eq!(rows.rows(), 0);
        }
    }
    let (result, _) = batch(&format!("{} ,", entries(&[GOOD])), &mut Sources::new());
    assert_eq!(
        result.unwrap_err().message,
        format!(
            "malformed json at byte {}: expected the end of the body",
            entries(&[GOOD]).len() + 1
        )
    );
}
