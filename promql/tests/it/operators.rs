//! Operators and aggregations by small examples.

use promql::{ErrorKind, MemoryStorage};

use crate::loaded::{instant, loaded, range};

fn series() -> MemoryStorage {
    loaded(&[
        r#"errors{code="500",method="get"} 24"#,
        r#"errors{code="404",method="get"} 30"#,
        r#"errors{code="500",method="post"} 6"#,
        r#"requests{method="get"} 600"#,
        r#"requests{method="del"} 34"#,
        r#"requests{method="post"} 120"#,
    ])
}

fn is(query: &str, expected: &str) {
    assert_eq!(instant(&series(), query, 0).unwrap(), expected, "{query}");
}

fn is_refused(query: &str, words: &str) {
    let error = instant(&series(), query, 0).expect_err(query);
    assert_eq!(error.kind, ErrorKind::Execution, "{query}");
    assert!(error.message.contains(words), "{query}: {error}");
}

#[test]
fn series_of_two_vectors_match_by_their_labels() {
    is(
        r#"errors{code="500"} / ignoring(code) requests"#,
        r#"{method="get"} 0.04; {method="post"} 0.05"#,
    );
    is(
        "errors / ignoring(code) group_left requests",
        r#"{code="404", method="get"} 0.05; {code="500", method="get"} 0.04; {code="500", method="post"} 0.05"#,
    );
    is(
        "requests / on(method) group_right() errors{code=\"500\"}",
        r#"{code="500", method="get"} 25; {code="500", method="post"} 20"#,
    );
}

#[test]
fn ambiguous_matches_are_refused() {
    is_refused(
        "errors / ignoring(code) requests",
        "many-to-one matching must be explicit",
    );
    is_refused("requests / ignoring(code) errors", "many-to-many");
    is_refused("requests * on(method) group_left errors", "many-to-many");
    is_refused(
        "errors * on(method) group_left(code) label_replace(requests, \"code\", \"x\", \"\", \"\")",
        "grouping labels must ensure unique matches",
    );
    is_refused(
        "label_replace(errors, \"code\", \"\", \"\", \"\")",
        "same labelset",
    );
}

#[test]
fn included_labels_come_from_the_one_side() {
    is(
        r#"requests{method="get"} * on(method) group_left(code) errors{code="404"}"#,
        r#"{code="404", method="get"} 18000"#,
    );
}

#[test]
fn set_operators_go_by_the_presence_of_matches() {
    is(
        "requests and on(method) errors",
        r#"{__name__="requests", method="get"} 600; {__name__="requests", method="post"} 120"#,
    );
    is(
        "requests unless on(method) errors",
        r#"{__name__="requests", method="del"} 34"#,
    );
    is(
        "errors{code=\"404\"} or requests{method=\"del\"}",
        r#"{__name__="errors", code="404", method="get"} 30; {__name__="requests", method="del"} 34"#,
    );
}

#[test]
fn comparisons_filter_or_answer_with_bool() {
    is(
        "requests > 100",
        r#"{__name__="requests", method="get"} 600; {__name__="requests", method="post"} 120"#,
    );
    is("100 > requests", r#"{__name__="requests", method="del"} 34"#);
    is(
        "requests > bool 100",
        r#"{method="del"} 0; {method="get"} 1; {method="post"} 1"#,
    );
    is("1 < bool 2", "1");
}

#[test]
fn aggregations_make_one_series_of_a_group() {
    is("sum(errors)", "{} 60");
    is("sum by (code) (errors)", r#"{code="404"} 30; {code="500"} 30"#);
    is(
        "avg without (code) (errors)",
        r#"{method="get"} 27; {method="post"} 6"#,
    );
    is("count(errors) + min(errors) * max(errors)", "{} 183");
    is("group(errors)", "{} 1");
    is("stdvar(errors)", "{} 104");
    is("quantile(0.5, errors)", "{} 24");
    is("count_values(\"v\", errors > bool 20)", r#"{v="0"} 1; {v="1"} 2"#);
    is(
        "topk(1, errors)",
        r#"{__name__="errors", code="404", method="get"} 30"#,
    );
    is(
        "bottomk by (code) (1, errors{code=\"500\"})",
        r#"{__name__="errors", code="500", method="post"} 6"#,
    );
}

#[test]
fn matches_may_change_from_step_to_step() {
    let storage = loaded(&[
        r#"x{a="1"} 1 2 3"#,
        r#"owner{a="1",name="old"} 1 stale"#,
        r#"owner{a="1",name="new"} _ 1 1"#,
    ]);
    let answer = range(&storage, "x * on(a) group_left(name) owner", (0, 30, 15)).unwrap();
    assert_eq!(answer, r#"{a="1", name="new"} 2 3; {a="1", name="old"} 1"#);
}
