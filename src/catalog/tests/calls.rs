//! Counting calls by month: limits, clock changes, concurrent threads.

use std::thread;

use crate::catalog::{CallCounts, MonthCalls, MonthDay};

const NOVEMBER: MonthDay = 20_758;
const DECEMBER: MonthDay = NOVEMBER + 30;
const OCTOBER: MonthDay = NOVEMBER - 31;
const FAR: MonthDay = NOVEMBER + 4_000;

fn counted(counts: &CallCounts, month: MonthDay) -> (MonthDay, u64) {
    let at = counts.count(month, None).unwrap();
    (at.month, at.calls)
}

#[test]
fn each_month_has_its_own_count() {
    let counts = CallCounts::default();
    assert_eq!(
        counts.standing(NOVEMBER),
        MonthCalls {
            month: NOVEMBER,
            calls: 0
        }
    );
    assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 1));
    assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 2));
    assert_eq!(counted(&counts, DECEMBER), (DECEMBER, 1));
    assert_eq!(
        counts.standing(DECEMBER),
        MonthCalls {
            month: DECEMBER,
            calls: 1
        }
    );
}

#[test]
fn refused_calls_are_not_counted() {
    let counts = CallCounts::default();
    assert!(counts.count(NOVEMBER, Some(1)).is_ok());
    for _ in 0..3 {
        let full = MonthCalls {
            month: NOVEMBER,
            calls: 1,
        };
        assert_eq!(counts.count(NOVEMBER, Some(1)), Err(full));
    }
    assert!(
        counts.count(NOVEMBER, Some(2)).is_ok(),
        "a larger plan continues the count"
    );
    assert!(
        counts.count(NOVEMBER, Some(1)).is_err(),
        "a smaller one is used up"
    );
}

#[test]
fn a_clock_set_back_finds_past_months_as_counted() {
    let counts = CallCounts::default();
    counted(&counts, NOVEMBER);
    assert_eq!(
        counted(&counts, OCTOBER),
        (NOVEMBER, 2),
        "no call was made in october"
    );
    assert_eq!(counted(&counts, FAR), (FAR, 1), "the clock leaps ahead");
    assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 3), "and is put right");
    assert_eq!(
        counted(&counts, DECEMBER),
        (DECEMBER, 1),
        "the next month begins as ever"
    );
    assert_eq!(
        counted(&counts, NOVEMBER),
        (NOVEMBER, 4),
        "an hour back over its beginning"
    );
}

/// Calls counted while the clock was years ahead must not block the organization until then.
#[test]
fn a_clock_once_years_ahead_does_not_block_later_calls() {
    let counts = CallCounts::default();
    assert_eq!(counted(&counts, FAR), (FAR, 1));
    assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 1));
}

#[test]
fn the_month_furthest_ahead_is_evicted_first() {
    let counts = CallCounts::default();
    for month in [FAR, OCTOBER, NOVEMBER, DECEMBER, DECEMBER + 31] {
        counted(&counts, month);
    }
    let mut months: Vec<MonthDay> = counts.totals().map(|it| it.month).collect();
    months.sort_unstable();
    assert_eq!(months, [OCTOBER, NOVEMBER, DECEMBER, DECEMBER + 31]);
}

#[test]
fn restoring_never_lowers_a_count() {
    let counts = CallCounts::default();
    counts.restore(MonthCalls {
        month: NOVEMBER,
        calls: 7,
    });
    counts.restore(MonthCalls {
        month: NOVEMBER,
        calls: 5,
    });
    assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 8));
    counts.restore(MonthCalls {
        month: NOVEMBER,
        calls: u64::MAX,
    });
    assert_eq!(
        counts.count(NOVEMBER, None).unwrap().month,
        NOVEMBER,
        "a full counter stays in its month"
    );
}

#[test]
fn only_the_first_call_after_a_save_is_reported_unsaved() {
    let counts = CallCounts::default();
    let is_reported = |month| {
        counted(&counts, month);
        counts.is_first_unsaved()
    };
    assert!(is_reported(NOVEMBER));
    assert!(!is_reported(NOVEMBER));
    assert_eq!(counts.save().map(|it| it.calls).sum::<u64>(), 2);
    assert!(is_reported(NOVEMBER));
}

#[test]
fn concurrent_calls_pass_exactly_up_to_the_plan() {
    let counts = CallCounts::default();
    let count = || {
        (0..1_000)
            .filter(|_| counts.count(NOVEMBER, Some(1_500)).is_ok())
            .count()
    };
    let passed: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 1_500);
}
