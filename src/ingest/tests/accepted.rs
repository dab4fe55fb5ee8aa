//! Accepted bodies and their rows.

use super::*;

const FULL: &str = r#"{"dataSourceId":"000000000000000000000001","timestamp":"2025-12-31T23:59:59.5Z","values":{"t":20.15,"p":-3,"on":true,"state":"ok"},"metadata":{"n":1.50}}"#;

fn write_full(rows: &mut RowsWriter) {
    rows.begin(1);
    rows.number(0, 20.15, 2);
    rows.number(1, -3.0, 0);
    rows.boolean(2, true);
    rows.string(3, "ok");
    rows.metadata(r#"{"n":1.50}"#);
    rows.commit(NOW_NS - 500_000_000);
}

#[test]
fn entries_become_rows_in_order() {
    let second = r#"{"dataSourceId":"000000000000000000000002","values":{"t":1e2}}"#;
    let third = r#"{"dataSourceId":"000000000000000000000001","values":{"p":null,"t":7}}"#;
    let mut sources = Sources::new();
    let (result, rows) = batch(&entries(&[FULL, second, third, FULL, second]), &mut sources);
    let outcome = ready(result);
    assert_eq!(
        (outcome.bucket_id, outcome.entries, outcome.errors),
        (id(BUCKET), 5, vec![])
    );
    assert_eq!(rows.rows(), 5);
    assert_eq!(sources.looked_up, 2, "each source is looked up once");
    let by_hand = expected(|rows| {
        let second = |rows: &mut RowsWriter| {
            rows.begin(2);
            rows.number(0, 100.0, engine::rows::NOT_DECIMAL);
            rows.commit(NOW_NS);
        };
        write_full(rows);
        second(rows);
        rows.begin(1);
        rows.number(0, 7.0, 0);
        rows.commit(NOW_NS);
        write_full(rows);
        second(rows);
    });
    assert_eq!(encoded(&rows), by_hand);
}

#[test]
fn spelling_and_order_of_members_do_not_matter() {
    let by_hand = expected(write_full);
    let shuffled = r#" { "x" : [ { } ] , "metadata" : {"n":1.50} , "values" : { "state" : "o\u006b" , "on" : true , "p" : -3 , "\u0074" : 20.15 } ,
        "timestamp" : "2026-01-01T00:59:59.500+01:00" , "dataSourceId" : "00000000000000000000000\u0031" } "#;
    let escaped = FULL
        .replace("values", "v\\u0061lues")
        .replace("dataSourceId", "\\u0064ataSourceId");
    for entry in [FULL, shuffled, &escaped] {
        for body in [
            entries(&[entry]),
            format!(r#"{{"dataPoints":[{entry}],"bucketId":"{BUCKET}"}}"#),
            format!(
                r#"{{"unit":{{"a":[1e999]}},"dataPoints":[{entry}],"bucketId":"{ELSEWHERE}","bucketId":"{BUCKET}"}}"#
            ),
            format!(r#"{{"bucketId":"{ELSEWHERE}","dataPoints":[{entry}],"bucketId":"{BUCKET}"}}"#),
            format!(r#"{{"bucketId":"{BUCKET}","dataPoints":[3,{entry},{entry}],"dataPoints":[{entry}]}}"#),
            format!(r#"{{"bucketId":"{BUCKET}","dataPoints":null,"data\u0050oints":[{entry}]}}"#),
        ] {
            let (result, rows) = batch(&body, &mut Sources::new());
            assert_eq!(ready(result).errors, vec![], "{body}");
            assert_eq!(encoded(&rows), by_hand, "{body}");
        }
        let body = format!(
            r#"{{"bucketId":"{BUCKET}",{}"#,
            entry.trim_start().trim_start_matches('{')
        );
        let mut rows = RowsWriter::new();
        let sources = Sources::new();
        let point = parse_point(body.as_bytes()).unwrap();
        let new_fields = point
            .write(
                sources.view(STRICT),
                NOW_NS,
                &mut rows,
                &mut SeriesOfRequest::default(),
            )
            .unwrap();
        assert_eq!(new_fields, [], "{body}");
        assert_eq!(point.timestamp_ns, Some(NOW_NS - 500_000_000));
        assert_eq!((point.bucket_id, point.source_id), (id(BUCKET), id(STRICT)));
        assert_eq!(encoded(&rows), by_hand, "{body}");
    }
}

#[test]
fn the_last_of_duplicate_members_wins() {
    let source = format!(r#""dataSourceId":"{STRICT}""#);
    for entry in [
        format!(r#"{{{source},"values":{{"t":1,"t":2}}}}"#),
        format!(r#"{{{source},"values":{{"t":"x","t":2,"p":1,"p":null}}}}"#),
        format!(r#"{{{source},"values":{{"t":1}},"values":{{"t":2}}}}"#),
        format!(
            r#"{{{source},"values":{{"zz":1}},"timestamp":5,"timestamp":"2026-01-01","values":{{"t":2}}}}"#
        ),
        format!(r#"{{{source},"values":[],"values":{{"t":2}},"metadata":{{"a":1}},"metadata":null}}"#),
        format!(r#"{{"dataSourceId":7,"values":{{"t":2}},{source}}}"#),
        format!(r#"{{"dataSourceId":"{EXTEND}","values":{{"t":2}},{source}}}"#),
        format!(r#"{{"dataSourceId":"{UNKNOWN}",{source},"values":{{"t":2}}}}"#),
    ] {
        let (result, rows) = batch(&entries(&[&entry]), &mut Sources::new());
        assert_eq!(ready(result).errors, vec![], "{entry}");
        let by_hand = expected(|rows| {
            rows.begin(1);
            rows.number(0, 2.0, 0);
            rows.commit(NOW_NS);
        });
        assert_eq!(encoded(&rows), by_hand, "{entry}");
    }
    let entry = format!(r#"{{{source},"values":{{"t":1}},"values":3}}"#);
    let (result, rows) = batch(&entries(&[&entry]), &mut Sources::new());
    assert_eq!(
        ready(result).errors[0].error,
        "values: must be an object, not a number"
    );
    assert_eq!(rows.rows(), 0);
}

#[test]
fn a_field_whose_name_looks_like_json_is_not_mistaken_for_it() {
    // The name of the fifth field is `a":1,"t`: the unescaped bytes of these two members.
    let entry = format!(
        r#"{{"dataSourceId":"{STRICT}","values":{{"t":1,"p":2,"on":true,"state":"x","a":1,"t":5}}}}"#
    );
    let outcome = ready(batch(&entries(&[&entry]), &mut Sources::new()).0);
    assert!(
        outcome.errors[0].error.contains(r#"field "a" is not declared"#),
        "{outcome:?}"
    );
    let entry = format!(r#"{{"dataSourceId":"{STRICT}","values":{{"a\":1,\"t":5}}}}"#);
    let (result, rows) = batch(&entries(&[&entry]), &mut Sources::new());
    assert_eq!(ready(result).errors, vec![]);
    let by_hand = expected(|rows| {
        rows.begin(1);
        rows.number(4, 5.0, 0);
        rows.commit(NOW_NS);
    });
    assert_eq!(encoded(&rows), by_hand);
}

#[test]
fn scratch_and_rows_do_not_leak_into_the_next_request() {
    let (mut scratch, mut rows) = (Scratch::default(), RowsWriter::new());
    let mut sources = Sources::new();
    let body = entries(&[FULL]);
    for refused in ["{", &entries(&[]), &entries(&[FULL, r#"{"values":{}}"#])] {
        let _ = parse_into(refused, &mut sources, &mut scratch, &mut rows);
        let result = parse_into(&body, &mut sources, &mut scratch, &mut rows);
        assert_eq!(ready(result).errors, vec![]);
        assert_eq!(encoded(&rows), expected(write_full));
    }
    let gone = &mut |_: ObjectId| None;
    let outcome = ready(parse_batch(
        body.as_bytes(),
        NOW_NS,
        gone,
        &mut scratch,
        &mut rows,
    ));
    assert_eq!(
        outcome.errors.len(),
        1,
        "the source of the request before is not remembered"
    );
}

#[test]
fn sources_of_the_same_version_are_looked_up_once_and_their_oldest_time_moves_on() {
    let version = |sources| SourcesVersion {
        catalog: 1,
        organization_id: id(UNKNOWN),
        buckets: 1,
        sources,
    };
    let point = |source: &str, time: &str| {
        format!(r#"{{"dataSourceId":"{source}","timestamp":"{time}","values":{{"t":1}}}}"#)
    };
    let time = "2026-01-01T00:00:00Z";
    let (strict, extend) = (point(STRICT, time), point(EXTEND, time));
    let of_two = entries(&[&strict, &extend, &strict]);
    let (mut scratch, mut rows) = (Scratch::default(), RowsWriter::new());
    let mut sources = Sources::new();
    scratch.version = Some(version(1));
    let errors = |body: &str, sources: &mut Sources, scratch: &mut Scratch, rows: &mut RowsWriter| {
        sources.looked_up = 0;
        ready(parse_into(body, sources, scratch, rows)).errors.len()
    };
    assert_eq!(errors(&of_two, &mut sources, &mut scratch, &mut rows), 0);
    assert_eq!(sources.looked_up, 2);
    let stored = encoded(&rows);
    assert_eq!(errors(&of_two, &mut sources, &mut scratch, &mut rows), 0);
    assert_eq!(sources.looked_up, 1, "the oldest time only");
    assert_eq!(encoded(&rows), stored);
    // Two hours later the points are too old.
    for view in sources.known.values_mut() {
        view.oldest_ns = NOW_NS + 1;
    }
    assert_eq!(errors(&of_two, &mut sources, &mut scratch, &mut rows), 3);
    // Another bucket, then the first one again.
    let elsewhere = of_two.replace(BUCKET, ELSEWHERE);
    let foreign = elsewhere.replace(STRICT, FOREIGN);
    sources = Sources::new();
    assert_eq!(errors(&foreign, &mut sources, &mut scratch, &mut rows), 1);
    assert_eq!(errors(&of_two, &mut sources, &mut scratch, &mut rows), 0);
    // A source that another version does not have.
    sources.known.remove(&id(STRICT));
    scratch.version = Some(version(2));
    assert_eq!(errors(&of_two, &mut sources, &mut scratch, &mut rows), 2);
    assert_eq!(sources.looked_up, 2);
}

#[test]
fn a_bounded_number_of_sources_is_kept() {
    let (mut scratch, mut rows) = (Scratch::default(), RowsWriter::new());
    let mut sources = Sources::new();
    scratch.version = Some(SourcesVersion {
        catalog: 1,
        organization_id: id(UNKNOWN),
        buckets: 1,
        sources: 1,
    });
    for batch in 0..5 {
        let points = (0..1_000).map(|nth| {
            let nth = 0x1000 + batch * 1_000 + nth;
            format!(r#"{{"dataSourceId":"{nth:024x}","values":{{"t":1}}}}"#)
        });
        let points: Vec<String> = points.collect();
        let points: Vec<&str> = points.iter().map(String::as_str).collect();
        let outcome = parse_into(&entries(&points), &mut sources, &mut scratch, &mut rows);
        assert_eq!(ready(outcome).errors.len(), 1_000);
        assert!(scratch.sources.len() <= 2_000, "{}", scratch.sources.len());
    }
}

#[test]
fn new_fields_of_an_extending_source_are_requested_then_written() {
    let point = |values: &str| format!(r#"{{"dataSourceId":"{EXTEND}","values":{values}}}"#);
    let body = entries(&[
        &point(r#"{"a":1,"t":2,"gone":null}"#),
        &point(r#"{"a":"two"}"#),
        &point(r#"{"b":true,"a":3}"#),
        &point(r#"{"c":1,"bad":[]}"#),
        &point(r#"{"d\u0021":"x"}"#),
    ]);
    let mut sources = Sources::new();
    let (result, rows) = batch(&body, &mut sources);
    assert_eq!(rows.rows(), 0);
    let Batch {
        bucket_id,
        new_fields,
        ..
    } = result.unwrap();
    assert_eq!(bucket_id, id(BUCKET));
    let named: Vec<_> = new_fields
        .iter()
        .map(|field| (field.name.as_str(), field.kind))
        .collect();
    assert_eq!(
        named,
        [
            ("a", FieldType::Number),
            ("b", FieldType::Boolean),
            ("d!", FieldType::String)
        ]
    );
    assert!(new_fields.iter().all(|field| field.source_id == id(EXTEND)));

    sources.add(&new_fields);
    let (result, rows) = batch(&body, &mut sources);
    let errors = ready(result).errors;
    assert_eq!(errors.iter().map(|error| error.index).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(
        errors[0].error,
        r#"values: field "a" is declared number, not a string"#
    );
    let by_hand = expected(|rows| {
        rows.begin(2);
        rows.number(1, 1.0, 0);
        rows.number(0, 2.0, 0);
        rows.commit(NOW_NS);
        rows.begin(2);
        rows.boolean(2, true);
        rows.number(1, 3.0, 0);
        rows.commit(NOW_NS);
        rows.begin(2);
        rows.string(3, "x");
        rows.commit(NOW_NS);
    });
    assert_eq!(encoded(&rows), by_hand);
}

#[test]
fn a_schema_is_not_extended_beyond_its_limit() {
    let mut sources = Sources::new();
    let point = |from: usize, to: usize| {
        let fields: Vec<String> = (from..to).map(|field| format!(r#""f{field}":{field}"#)).collect();
        format!(
            r#"{{"dataSourceId":"{EXTEND}","values":{{{}}}}}"#,
            fields.join(",")
        )
    };
    let body = entries(&[&point(0, 200), &point(150, 255), &point(254, 256), &point(0, 255)]);
    let (result, _) = batch(&body, &mut sources);
    let new_fields = result.unwrap().new_fields;
    assert_eq!(new_fields.len(), 255, "with the declared one, 256");
    sources.add(&new_fields);
    let (result, rows) = batch(&body, &mut sources);
    let errors = ready(result).errors;
    assert_eq!((errors.len(), errors[0].index, rows.rows()), (1, 2, 3));
    assert!(
        errors[0]
            .error
            .contains(r#"field "f255" is not declared, and the schema has its 256 fields already"#)
    );
}

#[test]
fn one_point_does_not_request_more_fields_than_the_limit_leaves() {
    let fields: Vec<String> = (0..300).map(|field| format!(r#""f{field}":{field}"#)).collect();
    let entry = format!(
        r#"{{"dataSourceId":"{EXTEND}","values":{{{}}}}}"#,
        fields.join(",")
    );
    let errors = ready(batch(&entries(&[&entry]), &mut Sources::new()).0).errors;
    assert!(
        errors[0]
            .error
            .starts_with(r#"values: field "f255" is not declared"#),
        "{errors:?}"
    );
}

#[test]
fn fields_seen_before_the_bucket_changed_are_forgotten() {
    let entry = format!(r#"{{"dataSourceId":"{EXTEND}","values":{{"new":1}}}}"#);
    let body = format!(r#"{{"bucketId":"{BUCKET}","dataPoints":[{entry}],"bucketId":"{ELSEWHERE}"}}"#);
    let outcome = ready(batch(&body, &mut Sources::new()).0);
    assert_eq!((outcome.bucket_id, outcome.errors.len()), (id(ELSEWHERE), 1));
}

#[test]
fn the_answer_echoes_values_and_metadata() {
    let body = format!(
        r#"{{"bucketId":"{BUCKET}","dataSourceId":"{STRICT}","metadata":{{ "a":1.0, "b":1e999}},
            "values":{{"p":1.50,"t":20.0,"on":null,"state":"a\u0022\u0001é","p":-1e3}}}}"#
    );
    let point = parse_point(body.as_bytes()).unwrap();
    assert_eq!(point.metadata, Some(r#"{ "a":1.0, "b":1e999}"#));
    assert_eq!(point.timestamp_ns, None);
    let mut out = Vec::new();
    point.write_values(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"p":-1000,"t":20,"state":"a\"\u0001é"}"#
    );
}
