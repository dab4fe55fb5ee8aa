//! Histograms, exponential histograms and summaries.

use super::{check, check_refused, events, read, request, text};
use crate::METADATA_BYTES_MAX;
use crate::otlp::BUCKETS_MAX;

#[test]
fn explicit_histograms_have_totals_and_cumulative_buckets_with_inf_last() {
    check(
        &format!(
            r#"{{"name":"h","histogram":{{"dataPoints":[{{"timeUnixNano":"9","count":"10","sum":12.5,"min":0.1,"max":7,
               "bucketCounts":["1","2","0","7"],"explicitBounds":[0.005,1,2.50],"attributes":[{}]}}]}}}}"#,
            text("a", "1")
        ),
        &[
            r#"0 histogram h{"a":"1"} 9 count=10 sum=12.5 min=0.1 max=7"#,
            r#"0 histogram h.bucket{"a":"1","le":"0.005"} 9 value=1"#,
            r#"0 histogram h.bucket{"a":"1","le":"1"} 9 value=3"#,
            r#"0 histogram h.bucket{"a":"1","le":"2.5"} 9 value=3"#,
            r#"0 histogram h.bucket{"a":"1","le":"+Inf"} 9 value=10"#,
        ],
    );
}

#[test]
fn missing_sum_min_and_max_are_left_out_and_buckets_may_be_missing() {
    check(
        r#"{"name":"h","histogram":{"dataPoints":[{"timeUnixNano":"9","count":3},{"timeUnixNano":"9","count":3,"sum":"NaN","max":2},
           {"timeUnixNano":"9","count":3,"bucketCounts":[3]}]}}"#,
        &[
            "0 histogram h 9 count=3",
            "0 histogram h 9 count=3 max=2",
            "0 histogram h 9 count=3",
            r#"0 histogram h.bucket{"le":"+Inf"} 9 value=3"#,
        ],
    );
}

#[test]
fn a_histogram_with_buckets_is_one_sample() {
    let json = request(
        "",
        r#"{"name":"h","histogram":{"dataPoints":[{"timeUnixNano":"9","count":1,"bucketCounts":[1,0],"explicitBounds":[1]}]}}"#,
    );
    assert_eq!(read(&json).unwrap().samples, 1);
}

#[test]
fn cumulative_counts_do_not_overflow() {
    let most = u64::MAX;
    check(
        &format!(
            r#"{{"name":"h","histogram":{{"dataPoints":[{{"timeUnixNano":"9","count":"{most}","bucketCounts":["{most}","{most}"],"explicitBounds":[1]}}]}}}}"#
        ),
        &[
            "0 histogram h 9 count=18446744073709552000",
            r#"0 histogram h.bucket{"le":"1"} 9 value=18446744073709552000"#,
            r#"0 histogram h.bucket{"le":"+Inf"} 9 value=36893488147419103000"#,
        ],
    );
}

#[test]
fn buckets_that_do_not_fit_their_bounds_are_refused() {
    let histogram = |counts: &str, bounds: &str| {
        format!(
            r#"{{"name":"h","histogram":{{"dataPoints":[{{"timeUnixNano":"9","count":1,"bucketCounts":[{counts}],"explicitBounds":[{bounds}]}}]}}}}"#
        )
    };
    check_refused(&histogram("1,2", "1,2"), "2 bucketCounts and 2 explicitBounds");
    check_refused(&histogram("", "1"), "0 bucketCounts and 1 explicitBounds");
    check_refused(&histogram("1,2,3", "2,1"), "do not ascend");
    check_refused(&histogram("1,2,3", "1,1"), "do not ascend");
    check_refused(&histogram("1,2", "\"Infinity\""), "are not finite");
    check_refused(&histogram("1,2", "\"NaN\""), "are not finite");
    let many = |bounds: usize| {
        let list: Vec<_> = (0..bounds).map(|bound| bound.to_string()).collect();
        histogram(&vec!["0"; bounds + 1].join(","), &list.join(","))
    };
    assert_eq!(events(&many(BUCKETS_MAX)).len(), BUCKETS_MAX + 2);
    check_refused(&many(BUCKETS_MAX + 1), "more than 1024 buckets");
}

#[test]
fn an_attribute_with_the_name_of_a_bucket_label_is_refused() {
    let le = text("le", "x");
    check_refused(
        &format!(
            r#"{{"name":"h","histogram":{{"dataPoints":[{{"timeUnixNano":"9","bucketCounts":[1],"attributes":[{le}]}}]}}}}"#
        ),
        "`le` is the name under which",
    );
    let quantile = text("quantile", "x");
    check_refused(
        &format!(
            r#"{{"name":"s","summary":{{"dataPoints":[{{"timeUnixNano":"9","quantileValues":[{{}}],"attributes":[{quantile}]}}]}}}}"#
        ),
        "`quantile` is the name under which",
    );
}

#[test]
fn exponential_histograms_have_totals_and_no_buckets() {
    check(
        r#"{"name":"e","exponentialHistogram":{"dataPoints":[{"timeUnixNano":"9","count":"2","sum":3,"min":1,"max":2,"scale":-3,"zeroCount":"1","positive":{"offset":1,"bucketCounts":["1"]}}]}}"#,
        &["0 histogram e 9 count=2 sum=3 min=1 max=2"],
    );
}

#[test]
fn summaries_have_count_sum_and_quantiles() {
    check(
        r#"{"name":"s","summary":{"dataPoints":[{"timeUnixNano":"9","count":"4","sum":10,"quantileValues":[{"quantile":0.5,"value":2},{"value":1},{"quantile":0.99,"value":"NaN"},{"quantile":1,"value":7.5}]}]}}"#,
        &[
            "0 histogram s 9 count=4 sum=10",
            r#"0 histogram s.quantile{"quantile":"0.5"} 9 value=2"#,
            r#"0 histogram s.quantile{"quantile":"0"} 9 value=1"#,
            r#"0 histogram s.quantile{"quantile":"1"} 9 value=7.5"#,
        ],
    );
    check_refused(
        r#"{"name":"s","summary":{"dataPoints":[{"timeUnixNano":"9","quantileValues":[{"quantile":1.5}]}]}}"#,
        "outside of 0 to 1",
    );
}

#[test]
fn a_bucket_label_that_does_not_fit_refuses_the_data_point_before_anything_is_handed_over() {
    let attribute = text("a", &"x".repeat(METADATA_BYTES_MAX - 20));
    check_refused(
        &format!(
            r#"{{"name":"h","histogram":{{"dataPoints":[{{"timeUnixNano":"9","bucketCounts":[1],"attributes":[{attribute}]}}]}}}}"#
        ),
        "longer than 16384 bytes",
    );
}
