//! Where versions of Prometheus differ, version 3 is meant; and what 2.42, with which answers are compared, has not.

use crate::loaded::{instant, loaded, range};

fn is(storage: &promql::MemoryStorage, query: &str, seconds: i64, expected: &str) {
    assert_eq!(instant(storage, query, seconds).unwrap(), expected, "{query}");
}

#[test]
fn ranges_and_look_back_are_open_on_their_left() {
    let storage = loaded(&["x 1 2 3 4 5 6 7 8 9"]);
    is(&storage, "count_over_time(x[1m])", 60, "{} 4");
    is(&storage, "sum_over_time(x[15s])", 30, "{} 3");
    is(&storage, "count_over_time(x[1m:15s])", 60, "{} 4");
    is(&storage, "x", 419, r#"{__name__="x"} 9"#);
    is(&storage, "x", 420, "");
}

#[test]
fn a_dot_in_a_pattern_matches_newlines() {
    let storage = loaded(&["x{a=\"b\\nc\"} 1"]);
    is(&storage, r#"count(x{a=~"b.c"})"#, 0, "{} 1");
    is(
        &storage,
        r#"count by (d) (label_replace(x, "d", "$1", "a", "(.).c"))"#,
        0,
        r#"{d="b"} 1"#,
    );
}

#[test]
fn names_of_before_version_3_are_the_same_functions() {
    let storage = loaded(&["x 1 2 4 8 16"]);
    let new = instant(&storage, "double_exponential_smoothing(x[5m], 0.5, 0.5)", 60).unwrap();
    assert_eq!(
        instant(&storage, "holt_winters(x[5m], 0.5, 0.5)", 60).unwrap(),
        new
    );
    assert_ne!(new, "");
}

#[test]
fn names_may_be_any_text() {
    let storage = loaded(&[r#"{"a.b", "c d"="e"} 1"#]);
    is(&storage, r#"{"a.b"}"#, 0, r#"{__name__="a.b", c d="e"} 1"#);
    is(&storage, r#"sum by ("c d") ({"a.b"})"#, 0, r#"{c d="e"} 1"#);
    is(&storage, r#"count_values("é", {"a.b"})"#, 0, r#"{é="1"} 1"#);
}

#[test]
fn a_deviation_of_what_is_not_finite_is_nan() {
    let storage = loaded(&["x 1"]);
    is(&storage, "stddev(x / 0)", 0, "{} NaN");
    is(&storage, "stdvar(x)", 0, "{} 0");
}

#[test]
fn a_fixed_range_stays_where_it_is_while_the_prediction_moves_on() {
    let storage = loaded(&["x 0 15 30 45 60"]);
    let answer = range(&storage, "predict_linear(x[1m] @ 60, 0)", (60, 180, 60)).unwrap();
    assert_eq!(answer, "{} 60 120 180");
}

#[test]
fn the_time_of_a_sample_heeds_at_and_offset_together() {
    let storage = loaded(&["x 1 2 3 4 5"]);
    is(&storage, "timestamp(x @ 60 offset 20s)", 0, "{} 30");
    is(&storage, "timestamp(x offset 7s)", 59, "{} 45");
    is(&storage, "timestamp(x + 0)", 59, "{} 59");
}

#[test]
fn stale_markers_end_a_series_and_count_for_nothing() {
    let storage = loaded(&["x 1 2 stale _ 5"]);
    is(&storage, "x", 29, r#"{__name__="x"} 2"#);
    is(&storage, "x", 30, "");
    is(&storage, "x", 59, "");
    is(&storage, "x", 60, r#"{__name__="x"} 5"#);
    is(&storage, "count_over_time(x[5m])", 60, "{} 3");
    is(&storage, "x[5m]", 60, r#"{__name__="x"} 1 2 5"#);
}

#[test]
fn experimental_functions_over_ranges_answer() {
    let storage = loaded(&["x 4 6 2 1 999 1 2"]);
    is(&storage, "mad_over_time(x[5m])", 90, "{} 1");
    is(&storage, "first_over_time(x[1m])", 90, r#"{__name__="x"} 1"#);
    is(&storage, "ts_of_first_over_time(x[5m])", 90, "{} 0");
    is(&storage, "ts_of_last_over_time(x[5m])", 95, "{} 90");
    is(&storage, "ts_of_min_over_time(x[5m])", 90, "{} 75");
    is(&storage, "ts_of_max_over_time(x[5m])", 90, "{} 60");
}

#[test]
fn limits_keep_some_series() {
    let names: Vec<String> = (0..50).map(|at| format!(r#"x{{a="{at:02}"}} 1"#)).collect();
    let storage = loaded(&names.iter().map(String::as_str).collect::<Vec<_>>());
    is(&storage, "count(limitk(3, x))", 0, "{} 3");
    is(&storage, "limitk(1, x)", 0, r#"{__name__="x", a="00"} 1"#);
    is(
        &storage,
        "count(limit_ratio(0.4, x) or limit_ratio(-0.6, x))",
        0,
        "{} 50",
    );
    is(&storage, "limit_ratio(0.4, x) and limit_ratio(-0.6, x)", 0, "");
    is(&storage, "count(limit_ratio(1, x))", 0, "{} 50");
    is(&storage, "limit_ratio(0, x)", 0, "");
    assert!(instant(&storage, "limitk(NaN, x)", 0).is_err());
}

#[test]
fn series_are_sorted_by_labels_in_natural_order() {
    let storage = loaded(&[r#"x{a="10"} 1"#, r#"x{a="9"} 2"#]);
    is(
        &storage,
        "sort_by_label(x, \"a\")",
        0,
        r#"{__name__="x", a="9"} 2; {__name__="x", a="10"} 1"#,
    );
    is(
        &storage,
        "sort_by_label_desc(x, \"a\")",
        0,
        r#"{__name__="x", a="10"} 1; {__name__="x", a="9"} 2"#,
    );
    is(
        &storage,
        "sort(x)",
        0,
        r#"{__name__="x", a="10"} 1; {__name__="x", a="9"} 2"#,
    );
    is(
        &storage,
        "sort_desc(x)",
        0,
        r#"{__name__="x", a="9"} 2; {__name__="x", a="10"} 1"#,
    );
    is(
        &storage,
        "x",
        0,
        r#"{__name__="x", a="10"} 1; {__name__="x", a="9"} 2"#,
    );
}

#[test]
fn info_metrics_add_their_labels() {
    let storage = loaded(&[
        r#"x{instance="a",job="j"} 1"#,
        r#"x{instance="b",job="j"} 2"#,
        r#"target_info{instance="a",job="j",version="7",zone="z"} 1"#,
    ]);
    is(
        &storage,
        "info(x)",
        0,
        r#"{__name__="x", instance="a", job="j", version="7", zone="z"} 1; {__name__="x", instance="b", job="j"} 2"#,
    );
    let one = r#"{__name__="x", instance="a", job="j", version="7"} 1"#;
    is(&storage, r#"info(x, {version=~".+"})"#, 0, one);
}

#[test]
fn histograms_of_buckets_answer_quantiles_and_fractions() {
    let storage = loaded(&[
        r#"x{le="1"} 50"#,
        r#"x{le="2"} 90"#,
        r#"x{le="+Inf"} 100"#,
        r#"x{le="no"} 1"#,
    ]);
    is(&storage, "histogram_quantile(0.7, x)", 0, "{} 1.5");
    is(&storage, "histogram_fraction(0, 1, x)", 0, "{} 0.5");
    is(
        &storage,
        "histogram_quantiles(x, \"q\", 0.25, 1)",
        0,
        r#"{q="0.25"} 0.5; {q="1.0"} 2"#,
    );
    is(&storage, "histogram_avg(x)", 0, "");
    is(&storage, "histogram_count(x)", 0, "");
}

#[test]
fn numbers_of_the_question_itself_are_functions() {
    let storage = loaded(&[]);
    let ask = |query| range(&storage, query, (60, 120, 60)).unwrap();
    assert_eq!(ask("start()"), "{} 60 60");
    assert_eq!(ask("end()"), "{} 120 120");
    assert_eq!(ask("range()"), "{} 60 60");
    assert_eq!(ask("step()"), "{} 60 60");
    assert_eq!(ask("min_of(time(), 100)"), "{} 60 100");
    assert_eq!(ask("max_of(time(), 100)"), "{} 100 120");
}
