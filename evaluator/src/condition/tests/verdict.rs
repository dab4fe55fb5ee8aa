//! Several inputs, and the evidence.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::row;
use crate::condition::{
    Alert, Finding, InputFinding, Inputs, Outcome, Row, Scalar, Verdict, inconclusive, verdict,
};
use Outcome::{Inconclusive, Met, NotMet};

/// The limit of the service.
const EVIDENCE_BYTES_MAX: usize = 65_536;

#[test]
fn the_whole_table_of_two_inputs() {
    for (first, second, any, all) in [
        (Met, Met, Met, Met),
        (Met, NotMet, Met, NotMet),
        (Met, Inconclusive, Met, Inconclusive),
        (NotMet, NotMet, NotMet, NotMet),
        (NotMet, Inconclusive, Inconclusive, NotMet),
        (Inconclusive, Inconclusive, Inconclusive, Inconclusive),
    ] {
        for pair in [[first, second], [second, first]] {
            assert_eq!(Inputs::Any.combine(&pair), any, "any of {pair:?}");
            assert_eq!(Inputs::All.combine(&pair), all, "all of {pair:?}");
        }
    }
}

#[test]
fn one_input_decides_alone_and_none_is_inconclusive() {
    for inputs in [Inputs::Any, Inputs::All] {
        for outcome in [Met, NotMet, Inconclusive] {
            assert_eq!(inputs.combine(&[outcome]), outcome);
            assert_eq!(inputs.combine(&[outcome; 10]), outcome);
        }
        assert_eq!(inputs.combine(&[]), Inconclusive);
    }
}

/// Three inputs combine like two and one: the combination is associative.
#[test]
fn more_inputs_follow_from_two() {
    let outcomes = [Met, NotMet, Inconclusive];
    for inputs in [Inputs::Any, Inputs::All] {
        for a in outcomes {
            for b in outcomes {
                for c in outcomes {
                    let two = inputs.combine(&[a, b]);
                    assert_eq!(inputs.combine(&[a, b, c]), inputs.combine(&[two, c]));
                }
            }
        }
    }
}

fn input(key: &str, outcome: Outcome) -> InputFinding {
    let alert = Alert {
        current_value: json!(90),
        threshold: json!(80),
        operator: "gt",
    };
    InputFinding {
        key: key.to_owned(),
        field: format!("field of {key}"),
        rows: 7,
        finding: Finding {
            outcome,
            reason: (outcome == Inconclusive).then(|| "no rows in the window".to_owned()),
            row: (outcome != Inconclusive).then(|| Row {
                metadata: RawValue::from_string(r#"{"rack":"b"}"#.to_owned()).ok(),
                ..row(30, json!(90))
            }),
            alert: (outcome == Met).then_some(alert),
            figures: Map::new(),
        },
    }
}

#[test]
fn a_met_verdict_carries_the_members_of_the_alert() {
    let findings = [
        input("a", NotMet),
        input("b", Met),
        input("c", Met),
        input("d", Inconclusive),
    ];
    let Verdict { outcome, evidence } = verdict(Some("threshold"), Inputs::Any, &findings);
    assert_eq!(outcome, Met);
    let shown = |key: &str, outcome: &str| {
        json!({"key": key, "field": format!("field of {key}"), "outcome": outcome, "rows": 7,
               "row": {"timestamp": "1970-01-01T00:00:30Z", "value": 90}})
    };
    assert_eq!(
        evidence,
        json!({
            "kind": "threshold",
            "currentValue": 90,
            "threshold": 80,
            "operator": "gt",
            "dataPoint": {
                "timestamp": "1970-01-01T00:00:30Z",
                "values": {"field of b": 90},
                "metadata": {"rack": "b"},
            },
            "inputs": [
                shown("a", "not_met"),
                shown("b", "met"),
                shown("c", "met"),
                {"key": "d", "field": "field of d", "outcome": "inconclusive", "rows": 7,
                 "reason": "no rows in the window"},
            ],
        })
    );
}

#[test]
fn a_verdict_that_is_not_met_has_no_alert_members() {
    for (inputs, findings) in [
        (Inputs::All, [input("a", Met), input("b", NotMet)]),
        (Inputs::All, [input("a", Met), input("b", Inconclusive)]),
        (Inputs::Any, [input("a", NotMet), input("b", Inconclusive)]),
    ] {
        let verdict = verdict(Some("range"), inputs, &findings);
        assert_ne!(verdict.outcome, Met);
        for member in ["currentValue", "threshold", "operator", "dataPoint"] {
            assert_eq!(verdict.evidence.get(member), None);
        }
    }
}

#[test]
fn absence_without_rows_sends_no_data_point() {
    let mut nothing = input("a", Met);
    nothing.finding.row = None;
    let evidence = verdict(Some("absence"), Inputs::Any, &[nothing]).evidence;
    assert_eq!(evidence.get("dataPoint"), None);
    assert_eq!(evidence["currentValue"], json!(90));
}

#[test]
fn a_rule_that_cannot_be_evaluated_gives_the_reason() {
    let verdict = inconclusive(Some("forecast"), "the kind `forecast` is not known here");
    assert_eq!(verdict.outcome, Inconclusive);
    assert_eq!(
        verdict.evidence,
        json!({"kind": "forecast", "reason": "the kind `forecast` is not known here"})
    );
    assert_eq!(inconclusive(None, "no kind").evidence["kind"], Value::Null);
}

/// Ten inputs with texts of the maximum length, all of characters that have to be escaped.
#[test]
fn the_evidence_stays_below_the_limit_of_the_service() {
    let long = "\u{1}".repeat(200_000);
    let metadata = format!("{{\"note\":\"{}\"}}", "x".repeat(16_000));
    let findings: Vec<InputFinding> = (0..10)
        .map(|_| {
            let mut input = input(&long, Met);
            input.field = long.clone();
            input.finding.row = Some(Row {
                timestamp: long.clone(),
                value: Some(Scalar::Text(long.clone())),
                metadata: RawValue::from_string(metadata.clone()).ok(),
            });
            if let Some(alert) = &mut input.finding.alert {
                alert.current_value = json!(long);
                alert.threshold = json!(long);
            }
            input
        })
        .collect();
    let evidence = verdict(Some(&long), Inputs::Any, &findings).evidence;
    assert!(evidence["dataPoint"]["metadata"]["note"].is_string());
    let bytes = evidence.to_string().len();
    assert!(bytes < EVIDENCE_BYTES_MAX, "{bytes}");
}

#[test]
fn metadata_that_the_service_cannot_parse_is_omitted() {
    for odd in [
        r#"{"n":1e999}"#.to_owned(),
        format!("[{}0]", "1e20,".repeat(3_000)),
    ] {
        let mut input = input("a", Met);
        if let Some(row) = &mut input.finding.row {
            row.metadata = RawValue::from_string(odd).ok();
            assert!(row.metadata.is_some());
        }
        let evidence = verdict(Some("threshold"), Inputs::Any, &[input]).evidence;
        assert_eq!(evidence["dataPoint"].get("metadata"), None);
        assert_eq!(evidence["dataPoint"]["timestamp"], "1970-01-01T00:00:30Z");
    }
}
