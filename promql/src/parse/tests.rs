//! What is read, and what is refused, with what words.

use super::*;

fn refused(query: &str) -> String {
    let error = expression(query, Newlines::Matched).expect_err(query);
    assert_eq!(error.kind, crate::error::ErrorKind::BadData, "{query}");
    error.message
}

fn taken(query: &str) -> Expr {
    expression(query, Newlines::Matched).unwrap_or_else(|error| panic!("{query}: {error}"))
}

#[test]
fn durations_that_are_no_finite_number_are_refused() {
    for query in [
        "x offset inf",
        "x offset nan",
        "x offset -Inf",
        "x offset 1e300",
        "x offset 1e+300",
        "x[1e300]",
        "x[99999999999999y]",
        "x[5m:1e300]",
        "x offset 99999999999y1s",
    ] {
        assert!(refused(query).contains("out of range"), "{query}");
    }
}

#[test]
fn ranges_and_steps_are_positive_and_offsets_may_be_zero() {
    for query in ["x[0]", "x[0s]", "x[5m:0]", "x[5m:0s]"] {
        refused(query);
    }
    for query in [
        "x offset 0s",
        "x offset 0",
        "x offset -0s",
        "x offset -5m",
        "x offset 1.5",
    ] {
        taken(query);
    }
}

#[test]
fn text_in_strings_labels_and_comments_is_no_duration() {
    taken(r#"x{offset="inf"}"#);
    taken("x # offset inf");
    taken(r#"x{a="\" offset inf"}"#);
    taken("offset + 1");
}

#[test]
fn nesting_operators_and_length_are_bounded() {
    let parens = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
    taken(&parens(NESTING_MAX - 1));
    assert!(refused(&parens(NESTING_MAX + 1)).contains("nested"));
    assert!(refused(&format!("{}x", "(".repeat(60_000))).contains("nested"));
    assert!(refused(&format!("{}x", "-".repeat(60_000))).contains("operators"));
    assert!(refused(&format!("{}x", "x or ".repeat(OPERATORS_MAX + 1))).contains("operators"));
    assert!(refused(&format!("{}x", "x+".repeat(NESTING_MAX + 1))).contains("nested"));
    assert!(refused(&format!("x{}", " ".repeat(QUERY_BYTES_MAX))).contains("bytes"));
    taken(&format!("{}x", "x+".repeat(NESTING_MAX - 1)));
}

#[test]
fn names_of_before_and_after_prometheus_3_are_known() {
    taken("holt_winters(x[5m], 0.1, 0.1)");
    taken("double_exponential_smoothing(x[5m], 0.1, 0.1)");
    taken(r#"{"a.b", "c.d"="e"}"#);
}

#[test]
fn types_and_matchers_are_checked() {
    for query in [
        "rate(x)",
        "sum(1)",
        "x[5m] + 1",
        "1 > 2",
        "limitk(x, y)",
        "{a=~\".*\"}",
        "{}",
        "x{__name__=\"y\"}",
        "x{a=~\"(\"}",
        "count_values(1, x)",
        "x and 1",
        "x + fill(0) y",
        "unknown(x)",
        "sum(x,)",
        "x{a=\"b\" or c=\"d\"}",
        "1 +",
        "",
        "x @ 1e300",
        "ln(x[5m])",
        "exp(\"a\")",
    ] {
        refused(query);
    }
}

#[test]
fn match_parameters_are_plain_selectors() {
    assert!(selector("up{a=\"b\"}", Newlines::Matched).is_ok());
    for text in ["up offset 5m", "up[5m]", "sum(up)", "up @ 5", "1"] {
        assert!(selector(text, Newlines::Matched).is_err(), "{text}");
    }
}
