//! The checker's own tests: each fault in a history that is otherwise in order.

use std::ops::Range;

use crate::checker::{Kind, check};
use crate::record::{History, KeyLife, Outcome, Read, Row, RuleLife, Span, Verdict, Write};

fn span(began: u64, ended: u64) -> Span {
    Span { began, ended }
}

fn write(numbers: Range<u64>, at: Span, outcome: Outcome) -> Write {
    Write {
        numbers,
        span: at,
        outcome,
        copies_max: 1,
    }
}

fn read(shown: &[u64], at: Span) -> Read {
    let row = |number: &u64| Row {
        number: *number,
        id: format!("id {number}"),
    };
    Read {
        numbers: 0..100,
        span: at,
        rows: shown.iter().map(row).collect(),
        is_last: false,
    }
}

/// Two points one after the other, and a batch of three whose outcome is not known.
fn points(reads: &[Read]) -> History {
    History {
        writes: vec![
            write(0..1, span(0, 10), Outcome::Acknowledged),
            write(1..2, span(20, 30), Outcome::Acknowledged),
            write(8..11, span(20, 40), Outcome::Unknown),
        ],
        reads: reads.to_vec(),
        ..History::default()
    }
}

#[track_caller]
fn assert_kinds(history: &History, expected: &[Kind]) {
    let faults = check(history);
    let mut kinds: Vec<Kind> = faults.iter().map(|fault| fault.kind).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, expected, "{faults:?}");
}

#[test]
fn what_agrees_has_no_fault() {
    let during = span(5, 25);
    let after = span(50, 60);
    for reads in [
        vec![],
        vec![read(&[], during)],
        vec![read(&[0], during)],
        vec![read(&[0, 1], during)],
        vec![read(&[0, 1, 8, 9, 10], during)],
        vec![read(&[0, 1], after)],
        vec![read(&[0, 1], during), read(&[0, 1, 8, 9, 10], after)],
    ] {
        assert_kinds(&points(&reads), &[]);
    }
}

#[test]
fn what_is_acknowledged_is_there() {
    let mut missed = read(&[0], span(31, 35));
    assert_kinds(&points(std::slice::from_ref(&missed)), &[Kind::Stale]);
    missed.is_last = true;
    assert_kinds(&points(&[missed]), &[Kind::Lost]);
    // It may have been read before it was written.
    assert_kinds(&points(&[read(&[0], span(30, 35))]), &[]);
}

#[test]
fn what_was_shown_is_shown_again() {
    let shown = read(&[0, 1, 8, 9, 10], span(35, 36));
    let later = read(&[0, 1], span(37, 38));
    assert_kinds(&points(&[later.clone(), shown.clone()]), &[Kind::TakenBack]);
    let meanwhile = read(&[0, 1], span(36, 38));
    assert_kinds(&points(&[meanwhile, shown]), &[]);
}

#[test]
fn a_point_is_there_once_and_a_batch_as_a_whole() {
    let after = span(50, 60);
    assert_kinds(&points(&[read(&[0, 0, 1], after)]), &[Kind::Doubled]);
    assert_kinds(&points(&[read(&[0, 1, 8, 10], after)]), &[Kind::Torn]);
    assert_kinds(&points(&[read(&[0, 1, 2], after)]), &[Kind::Unsent]);
    // Before it was sent.
    assert_kinds(&points(&[read(&[0, 1], span(11, 19))]), &[Kind::Unsent]);
    // Sent twice without a key: once or twice, but always whole.
    let mut history = points(&[read(&[0, 1, 8, 8, 9, 9, 10, 10], after)]);
    assert_kinds(&history, &[Kind::Doubled]);
    history.writes[2].copies_max = 2;
    assert_kinds(&history, &[]);
    history.reads[0].rows.pop();
    assert_kinds(&history, &[Kind::Torn]);
}

#[test]
fn rows_are_in_order_and_ids_stay() {
    let after = span(50, 60);
    assert_kinds(&points(&[read(&[1, 0], after)]), &[Kind::Disordered]);
    assert_kinds(&points(&[read(&[8, 9, 10, 0, 1], after)]), &[Kind::Disordered]);
    // By their times, whoever came first.
    let mut history = points(&[read(&[8, 9, 10, 0, 1], after)]);
    for write in &mut history.writes {
        write.span = span(0, 45);
    }
    assert_kinds(&history, &[Kind::Disordered]);
    let mut history = points(&[read(&[0, 1], after), read(&[0, 1], span(70, 80))]);
    history.reads[0].rows[0].id = "another".to_owned();
    assert_kinds(&history, &[Kind::Changed]);
    // Nobody knows which of two came first that were sent at the same time.
    let mut history = points(&[read(&[1, 0], after)]);
    history.writes[1].span.began = 10;
    assert_kinds(&history, &[]);
}

fn key(deletion: Option<(Span, Outcome)>, listed: usize, uses: &[(Span, bool)]) -> History {
    let key = KeyLife {
        name: "key".to_owned(),
        creation: (span(0, 10), Outcome::Acknowledged),
        deletion,
        uses: uses.to_vec(),
        listed,
    };
    History {
        keys: vec![key],
        ..History::default()
    }
}

#[test]
fn a_key_works_from_its_creation_to_its_deletion() {
    let deleted = Some((span(20, 30), Outcome::Acknowledged));
    assert_kinds(&key(None, 1, &[(span(11, 12), true)]), &[]);
    assert_kinds(&key(None, 0, &[]), &[Kind::Lost]);
    assert_kinds(&key(None, 2, &[]), &[Kind::Doubled]);
    assert_kinds(&key(None, 1, &[(span(11, 12), false)]), &[Kind::Stale]);
    assert_kinds(
        &key(deleted, 0, &[(span(11, 25), false), (span(25, 31), true)]),
        &[],
    );
    assert_kinds(&key(deleted, 1, &[]), &[Kind::Lost]);
    assert_kinds(&key(deleted, 0, &[(span(31, 32), true)]), &[Kind::Stale]);
    let unknown = Some((span(20, 30), Outcome::Unknown));
    for listed in [0, 1] {
        assert_kinds(&key(unknown, listed, &[(span(31, 32), listed == 1)]), &[]);
    }
}

/// A rule with these verdicts, whose history has these outcomes, each with its trigger and its delivery.
fn rule(verdicts: &[Verdict], history: &[&str]) -> History {
    let met = history.iter().filter(|outcome| **outcome == "met").count();
    let rule = RuleLife {
        name: "rule".to_owned(),
        creation: (span(0, 10), Outcome::Acknowledged),
        verdicts: verdicts
            .iter()
            .map(|verdict| (span(20, 30), verdict.clone()))
            .collect(),
        due: Vec::new(),
        listed: 1,
        history: history.iter().map(|outcome| (*outcome).to_owned()).collect(),
        triggers: met,
        deliveries: (0..met).map(|number| number.to_string()).collect(),
    };
    History {
        rules: vec![rule],
        ..History::default()
    }
}

#[test]
fn one_verdict_counts() {
    let accepted = |outcome: &str| Verdict::Accepted(outcome.to_owned());
    let refused = |outcome: &str| Verdict::Refused(Some(outcome.to_owned()));
    assert_kinds(&rule(&[accepted("met"), refused("met")], &["met"]), &[]);
    assert_kinds(&rule(&[Verdict::Unknown, refused("met")], &["met"]), &[]);
    assert_kinds(&rule(&[Verdict::Unknown], &[]), &[]);
    assert_kinds(
        &rule(&[accepted("met"), accepted("met")], &["met"]),
        &[Kind::Doubled],
    );
    assert_kinds(
        &rule(&[accepted("met"), Verdict::Unknown], &["met", "met"]),
        &[Kind::Doubled],
    );
    assert_kinds(&rule(&[accepted("met")], &[]), &[Kind::Lost]);
    assert_kinds(&rule(&[accepted("met")], &["not_met"]), &[Kind::Changed]);
    assert_kinds(&rule(&[refused("met")], &["not_met"]), &[Kind::Changed]);
    assert_kinds(&rule(&[Verdict::Refused(None)], &[]), &[Kind::Stale]);
    assert_kinds(&rule(&[], &["not_met"]), &[Kind::Unsent]);
}

#[test]
fn a_rule_is_there_once() {
    let mut history = rule(&[], &[]);
    for (creation, listed, expected) in [
        (Outcome::Acknowledged, 1, &[][..]),
        (Outcome::Acknowledged, 0, &[Kind::Lost]),
        (Outcome::Acknowledged, 2, &[Kind::Doubled]),
        (Outcome::Unknown, 0, &[]),
        (Outcome::Unknown, 1, &[]),
        (Outcome::Unknown, 2, &[Kind::Doubled]),
    ] {
        history.rules[0].creation.1 = creation;
        history.rules[0].listed = listed;
        assert_kinds(&history, expected);
    }
}

#[test]
fn a_rule_is_due_from_its_creation_to_its_verdict() {
    let accepted = Verdict::Accepted("not_met".to_owned());
    for (verdict, at, is_due, expected) in [
        (&accepted, span(11, 19), true, &[][..]),
        (&accepted, span(11, 19), false, &[Kind::Stale]),
        (&accepted, span(10, 19), false, &[]),
        (&accepted, span(11, 20), false, &[]),
        (&accepted, span(30, 40), true, &[]),
        (&accepted, span(31, 40), false, &[]),
        (&accepted, span(31, 40), true, &[Kind::Stale]),
        (&Verdict::Unknown, span(31, 40), true, &[]),
        (&Verdict::Unknown, span(31, 40), false, &[]),
    ] {
        let mut history = rule(std::slice::from_ref(verdict), &["not_met"]);
        history.rules[0].due.push((at, is_due));
        assert_kinds(&history, expected);
    }
}

#[test]
fn a_trigger_is_told_under_one_id() {
    let accepted = [Verdict::Accepted("met".to_owned())];
    let mut history = rule(&accepted, &["met"]);
    history.rules[0].deliveries.insert("another".to_owned());
    assert_kinds(&history, &[Kind::Doubled]);
    history.rules[0].deliveries.clear();
    assert_kinds(&history, &[Kind::Lost]);
    let mut history = rule(&accepted, &["met"]);
    history.rules[0].triggers = 0;
    assert_kinds(&history, &[Kind::Lost]);
    history.rules[0].triggers = 2;
    assert_kinds(&history, &[Kind::Doubled]);
}

#[test]
fn an_answer_that_nothing_explains_is_a_fault() {
    let history = History {
        unexpected: vec!["500".to_owned()],
        ..History::default()
    };
    assert_kinds(&history, &[Kind::Unexpected]);
}
