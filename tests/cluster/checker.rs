//! Decides whether what clients were answered agrees with what is there: a pure function.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::record::{History, KeyLife, Outcome, Read, RuleLife, Verdict, Write, time_of};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Acknowledged, and not there.
    Lost,
    /// There more often than it can be.
    Doubled,
    /// Acknowledged before a request began whose answer does not know it.
    Stale,
    /// Shown to one request, and not to one that began later.
    TakenBack,
    /// A part of what was sent in one request.
    Torn,
    /// Not in the order that is promised.
    Disordered,
    /// There, and nobody has sent it.
    Unsent,
    /// Not as it was answered.
    Changed,
    /// An answer that no fault explains.
    Unexpected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    pub what: String,
}

fn fault(kind: Kind, what: impl Into<String>) -> Fault {
    Fault {
        kind,
        what: what.into(),
    }
}

/// All faults of an organization's history.
pub fn check(history: &History) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let unexpected = history.unexpected.iter();
    faults.extend(unexpected.map(|what| fault(Kind::Unexpected, what)));
    check_points(history, &mut faults);
    for key in &history.keys {
        check_key(key, &mut faults);
    }
    for rule in &history.rules {
        check_rule(rule, &mut faults);
    }
    faults
}

fn check_points(history: &History, faults: &mut Vec<Fault>) {
    let by_first: BTreeMap<u64, &Write> = history
        .writes
        .iter()
        .map(|write| (write.numbers.start, write))
        .collect();
    let write_of = |number: u64| {
        let (_, write) = by_first.range(..=number).next_back()?;
        write.numbers.contains(&number).then_some(*write)
    };
    // The ids of each point, and the end of the first request that was shown it.
    let mut ids: HashMap<u64, HashSet<&str>> = HashMap::new();
    let mut shown_at: HashMap<u64, u64> = HashMap::new();
    for read in &history.reads {
        check_read(read, &by_first, &write_of, faults);
        for row in &read.rows {
            ids.entry(row.number).or_default().insert(&row.id);
            let first = shown_at.entry(row.number).or_insert(read.span.ended);
            *first = read.span.ended.min(*first);
        }
    }
    for (number, ids) in &ids {
        if write_of(*number).is_some_and(|write| ids.len() > write.copies_max) {
            faults.push(fault(
                Kind::Changed,
                format!("point {number} had the ids {ids:?}"),
            ));
        }
    }
    for read in &history.reads {
        let shown: HashSet<u64> = read.rows.iter().map(|row| row.number).collect();
        let missing = shown_at.iter().filter(|(number, at)| {
            **at < read.span.began && read.numbers.contains(*number) && !shown.contains(*number)
        });
        let missing: Vec<u64> = missing.map(|(number, _)| *number).collect();
        if !missing.is_empty() {
            let what = format!("the points {missing:?}, which were shown before {:?}", read.span);
            faults.push(fault(Kind::TakenBack, what));
        }
    }
}

fn check_read<'a>(
    read: &Read,
    by_first: &BTreeMap<u64, &'a Write>,
    write_of: &impl Fn(u64) -> Option<&'a Write>,
    faults: &mut Vec<Fault>,
) {
    let mut copies: HashMap<u64, usize> = HashMap::new();
    for row in &read.rows {
        *copies.entry(row.number).or_default() += 1;
    }
    for (number, count) in &copies {
        match write_of(*number) {
            Some(write) if *count > write.copies_max => {
                faults.push(fault(
                    Kind::Doubled,
                    format!("point {number} is there {count} times"),
                ));
            }
            Some(write) if write.span.began <= read.span.ended => {}
            _ => faults.push(fault(Kind::Unsent, format!("point {number} in {:?}", read.span))),
        }
    }
    for (first, write) in by_first.range(..read.numbers.end) {
        let asked = read.numbers.start.max(*first)..read.numbers.end.min(write.numbers.end);
        if asked.is_empty() {
            continue;
        }
        let counts: Vec<usize> = asked
            .clone()
            .map(|number| copies.get(&number).copied().unwrap_or(0))
            .collect();
        if counts.iter().any(|count| *count != counts[0]) {
            faults.push(fault(
                Kind::Torn,
                format!("the points {asked:?} are there {counts:?} times"),
            ));
        }
        let is_known = write.outcome == Outcome::Acknowledged && write.span.is_before(read.span);
        if is_known && counts.contains(&0) {
            let kind = if read.is_last { Kind::Lost } else { Kind::Stale };
            faults.push(fault(
                kind,
                format!(
                    "the points {asked:?}, written in {:?}, read in {:?}",
                    write.span, read.span
                ),
            ));
        }
    }
    check_order(read, write_of, faults);
}

/// By time; of one time, what was acknowledged before the other was sent comes first.
fn check_order<'a>(read: &Read, write_of: &impl Fn(u64) -> Option<&'a Write>, faults: &mut Vec<Fault>) {
    for (at, row) in read.rows.iter().enumerate() {
        // Only points of the same time are compared in pairs, so the inner loop is short.
        for later in &read.rows[at + 1..] {
            if time_of(row.number) < time_of(later.number) {
                break;
            }
            let is_wrong = time_of(row.number) > time_of(later.number)
                || match (write_of(row.number), write_of(later.number)) {
                    (Some(first), Some(second)) => {
                        let is_once = first.copies_max == 1 && second.copies_max == 1;
                        let is_known = second.outcome == Outcome::Acknowledged;
                        is_once && is_known && second.span.is_before(first.span)
                    }
                    _ => false,
                };
            if is_wrong {
                let what = format!("point {} is shown before {}", row.number, later.number);
                faults.push(fault(Kind::Disordered, what));
            }
        }
    }
}

fn check_key(key: &KeyLife, faults: &mut Vec<Fault>) {
    let name = &key.name;
    let (created, creation) = key.creation;
    match (key.listed, creation, key.deletion) {
        (2.., ..) => faults.push(fault(Kind::Doubled, format!("key {name}"))),
        (0, Outcome::Acknowledged, None) => faults.push(fault(Kind::Lost, format!("key {name}"))),
        (1, _, Some((_, Outcome::Acknowledged))) => {
            faults.push(fault(Kind::Lost, format!("the deletion of key {name}")));
        }
        _ => {}
    }
    for (used, is_taken) in &key.uses {
        let is_created = creation == Outcome::Acknowledged && created.is_before(*used);
        let may_be_deleted = key
            .deletion
            .is_some_and(|(deleted, _)| deleted.began <= used.ended);
        if !is_taken && is_created && !may_be_deleted {
            faults.push(fault(Kind::Stale, format!("key {name} is unknown in {used:?}")));
        }
        let is_deleted = key
            .deletion
            .is_some_and(|(deleted, outcome)| outcome == Outcome::Acknowledged && deleted.is_before(*used));
        if *is_taken && is_deleted {
            faults.push(fault(Kind::Stale, format!("key {name} is taken in {used:?}")));
        }
    }
}

fn check_rule(rule: &RuleLife, faults: &mut Vec<Fault>) {
    let name = &rule.name;
    match (rule.listed, rule.creation.1) {
        (0, Outcome::Acknowledged) => {
            faults.push(fault(Kind::Lost, format!("rule {name}")));
            return;
        }
        (2.., _) => faults.push(fault(Kind::Doubled, format!("rule {name}"))),
        _ => {}
    }
    let accepted = rule
        .verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Accepted(_)));
    if accepted.count() > 1 || rule.history.len() > 1 {
        let what = format!(
            "verdicts of rule {name}: {:?}, recorded {:?}",
            rule.verdicts, rule.history
        );
        faults.push(fault(Kind::Doubled, what));
    }
    for (_, verdict) in &rule.verdicts {
        let answered = match verdict {
            Verdict::Accepted(outcome) | Verdict::Refused(Some(outcome)) => outcome,
            Verdict::Refused(None) => {
                // It was due since it was made.
                faults.push(fault(Kind::Stale, format!("rule {name} was not due")));
                continue;
            }
            Verdict::Unknown => continue,
        };
        match rule.history.first() {
            None => faults.push(fault(Kind::Lost, format!("verdict {answered} of rule {name}"))),
            Some(recorded) if recorded != answered => {
                let what = format!("verdict {answered} of rule {name} is recorded as {recorded}");
                faults.push(fault(Kind::Changed, what));
            }
            Some(_) => {}
        }
    }
    if rule.verdicts.is_empty() && !rule.history.is_empty() {
        faults.push(fault(Kind::Unsent, format!("verdict of rule {name}")));
    }
    check_due(rule, faults);
    let triggers = rule.history.iter().filter(|outcome| *outcome == "met").count();
    let found = (rule.triggers, rule.deliveries.len());
    if found < (triggers, triggers) {
        faults.push(fault(
            Kind::Lost,
            format!("trigger or delivery of rule {name}: {found:?}"),
        ));
    }
    if rule.triggers > triggers || rule.deliveries.len() > triggers {
        faults.push(fault(
            Kind::Doubled,
            format!("trigger or delivery of rule {name}: {found:?}"),
        ));
    }
}

/// A rule is due from its creation to its verdict.
fn check_due(rule: &RuleLife, faults: &mut Vec<Fault>) {
    let name = &rule.name;
    let (created, creation) = rule.creation;
    for (listed, is_due) in &rule.due {
        let is_created = creation == Outcome::Acknowledged && created.is_before(*listed);
        let mut verdicts = rule.verdicts.iter();
        let may_be_judged = verdicts.any(|(posted, _)| posted.began <= listed.ended);
        if !is_due && is_created && !may_be_judged {
            faults.push(fault(
                Kind::Stale,
                format!("rule {name} is not due in {listed:?}"),
            ));
        }
        let mut verdicts = rule.verdicts.iter();
        let is_judged = verdicts.any(|(posted, verdict)| {
            matches!(verdict, Verdict::Accepted(_) | Verdict::Refused(Some(_))) && posted.is_before(*listed)
        });
        if *is_due && is_judged {
            faults.push(fault(
                Kind::Stale,
                format!("rule {name} is still due in {listed:?}"),
            ));
        }
    }
}
