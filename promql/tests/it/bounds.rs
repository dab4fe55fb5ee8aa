//! The bounds of an evaluation, and what it asks of a storage.

use std::cell::{Cell, RefCell};

use promql::{
    Answered, Error, ErrorKind, Hints, Labels, Limits, Matcher, MemoryStorage, Options, Query, STALE_MARKER,
    Samples, Storage, TimeRange, Value, VisitSamples, VisitWindows, WindowFunction, Windows,
};

use crate::loaded::{LIMITS, instant, loaded, written};

/// What a thread of a pool usually has.
const STACK_BYTES: usize = 2 << 20;

const MINUTE_MS: i64 = 60_000;

#[test]
fn the_deepest_question_fits_the_stack_of_a_thread() {
    let evaluated = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        let storage = loaded(&["x 1 2 3"]);
        let depth = promql::NESTING_MAX - 2;
        let questions = [
            format!("{}x{}", "abs(".repeat(depth), ")".repeat(depth)),
            format!("{}x{}", "(".repeat(depth), ")".repeat(depth)),
            format!("{}x{}", "sum(".repeat(depth), ")".repeat(depth)),
            format!("{}x", "x+".repeat(depth)),
            format!("{}x", "-".repeat(depth)),
            format!("x{}", "^x".repeat(depth)),
            format!(
                "{}x{}",
                "max_over_time(".repeat(depth / 2),
                "[1m:15s])".repeat(depth / 2)
            ),
        ];
        for question in &questions {
            let answer = instant(&storage, question, 30).unwrap();
            assert!(!answer.is_empty(), "{question}");
        }
        let longest = instant(
            &storage,
            &format!("{}x", "x+".repeat(promql::OPERATORS_MAX - 1)),
            30,
        );
        assert_eq!(longest.unwrap_err().kind, ErrorKind::BadData);
        let deeper = instant(
            &storage,
            &format!("{}x{}", "abs(".repeat(5_000), ")".repeat(5_000)),
            30,
        );
        assert_eq!(deeper.unwrap_err().kind, ErrorKind::BadData);
    });
    evaluated.unwrap().join().unwrap();
}

#[test]
fn a_question_that_needs_too_much_memory_is_told_what_to_narrow() {
    let names: Vec<String> = (0..100).map(|at| format!(r#"x{{a="{at}"}} 1 2 3"#)).collect();
    let storage = loaded(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let ask = |query: &str, memory_bytes_max| {
        let query = Query::parse(query, Options::default()).unwrap();
        let limits = Limits {
            memory_bytes_max,
            ..LIMITS
        };
        query.range(&storage, 0, 600_000, 1_000, limits)
    };
    // 100 series of some 300 steps.
    assert!(ask("x", 10_000_000).is_ok());
    for query in [
        "x",
        "x + x",
        "count_values(\"v\", x)",
        "topk(3, x)",
        "-x",
        "x or x",
        "x @ 30",
    ] {
        let error = ask(query, 100_000).expect_err(query);
        assert_eq!(error.kind, ErrorKind::Execution, "{query}");
        assert!(error.message.contains("time range"), "{query}: {error}");
    }
    // A sum needs no more than its own row beside those of its series.
    assert!(ask("sum(x)", 1_000_000).is_ok());
    for query in [
        "count_over_time(x[290y:1ms])",
        "sum_over_time(time()[290y:1ms])",
        "vector(1)[290y:1ms] @ 0",
    ] {
        if query.starts_with("sum_over_time(time()") {
            assert!(Query::parse(query, Options::default()).is_err());
            continue;
        }
        let query = Query::parse(query, Options::default()).unwrap();
        let error = query.instant(&storage, 0, LIMITS).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Execution);
    }
}

#[test]
fn memory_is_given_back_while_a_question_is_evaluated() {
    let storage = loaded(&["x 1 2 3"]);
    let many = vec!["x"; 100].join(" + ");
    let query = Query::parse(&many, Options::default()).unwrap();
    let limits = Limits {
        memory_bytes_max: 20_000,
        ..LIMITS
    };
    assert!(query.range(&storage, 0, 300_000, 1_000, limits).is_ok());
}

#[test]
fn an_interrupted_question_ends_with_timeout_wherever_it_is() {
    let storage = loaded(&[r#"x{a="1"} 1 2 3"#, r#"x{a="2"} 1 2 3"#]);
    for text in [
        "sum(rate(x[1m])) + on() group_left sum(x)",
        "topk(1, x)",
        "max_over_time(abs(x)[1m:1s])",
    ] {
        let query = Query::parse(text, Options::default()).unwrap();
        let ask = |after: u32| {
            let calls = Cell::new(0);
            let is_interrupted = || {
                calls.set(calls.get() + 1);
                calls.get() > after
            };
            let limits = Limits {
                is_interrupted: &is_interrupted,
                ..LIMITS
            };
            let outcome = query.range(&storage, 0, 600_000, 1_000, limits);
            (outcome, calls.get())
        };
        let (outcome, calls) = ask(u32::MAX);
        assert!(outcome.is_ok() && calls > 5, "{text}: {calls}");
        for after in 0..calls {
            let (outcome, _) = ask(after);
            assert_eq!(outcome.unwrap_err().kind, ErrorKind::Timeout, "{text}");
        }
    }
}

/// A storage that writes down what it is asked, and answers windows when it is told to.
#[derive(Default)]
struct Recording {
    samples: MemoryStorage,
    answers_windows: bool,
    selected: RefCell<Vec<(TimeRange, Hints)>>,
    windows: RefCell<Vec<Windows>>,
}

impl Storage for Recording {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        hints: &Hints,
        visit: VisitSamples<'_>,
    ) -> Result<(), Error> {
        self.selected.borrow_mut().push((range, *hints));
        self.samples.select(matchers, range, hints, visit)
    }

    fn windows(&self, _: &[Matcher], windows: &Windows, visit: VisitWindows<'_>) -> Result<Answered, Error> {
        self.windows.borrow_mut().push(*windows);
        if !self.answers_windows {
            return Ok(Answered::No);
        }
        let values: Vec<f64> = (0..windows.count)
            .map(|at| if at == 0 { STALE_MARKER } else { at as f64 })
            .collect();
        let _ = visit(Labels::from_pairs([("__name__", "x"), ("a", "b")]), &values);
        Ok(Answered::Yes)
    }
}

fn ask(storage: &Recording, query: &str) -> String {
    let query = Query::parse(query, Options::default()).unwrap();
    let value = query.range(storage, 0, 3 * MINUTE_MS, MINUTE_MS, LIMITS).unwrap();
    written(&value)
}

#[test]
fn a_selector_is_selected_once_for_all_steps_with_hints() {
    let storage = Recording {
        samples: loaded(&["x 1 2 3 4 5"]),
        ..Recording::default()
    };
    ask(&storage, "sum(rate(x[5m] offset 1m))");
    let selected = storage.selected.borrow();
    let range = TimeRange {
        after_ms: -6 * MINUTE_MS,
        until_ms: 2 * MINUTE_MS,
    };
    let hints = Hints {
        function: Some("rate"),
        range_ms: 5 * MINUTE_MS,
        step_ms: MINUTE_MS,
    };
    assert_eq!(*selected, [(range, hints)]);
    assert!(storage.windows.borrow().is_empty());
}

#[test]
fn windows_of_whole_minutes_may_be_answered_by_the_storage() {
    let storage = Recording {
        answers_windows: true,
        ..Recording::default()
    };
    let answer = ask(&storage, "avg_over_time(x[10m])");
    assert_eq!(
        answer,
        r#"{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[60,"1"],[120,"2"],[180,"3"]]}]}"#
    );
    let windows = Windows {
        function: WindowFunction::Avg,
        first_end_ms: 0,
        step_ms: MINUTE_MS,
        range_ms: 10 * MINUTE_MS,
        count: 4,
    };
    assert_eq!(*storage.windows.borrow(), [windows]);
    assert!(storage.selected.borrow().is_empty());
}

#[test]
fn samples_are_selected_when_the_storage_declines_or_is_not_asked() {
    let storage = Recording {
        samples: loaded(&["x 1 2 3 4 5"]),
        ..Recording::default()
    };
    assert!(ask(&storage, "max_over_time(x[10m])").contains(r#"[60,"5"]"#));
    assert_eq!(storage.windows.borrow().len(), 1);
    for query in [
        "max_over_time(x[90s])",
        "rate(x[10m])",
        "max_over_time(x[10m:1m])",
        "stddev_over_time(x[10m])",
    ] {
        ask(&storage, query);
    }
    assert_eq!(storage.windows.borrow().len(), 1);
    assert_eq!(storage.selected.borrow().len(), 5);
}

/// A storage that fails, or gives a series twice.
struct Faulty {
    fails: bool,
}

impl Storage for Faulty {
    fn select(&self, _: &[Matcher], _: TimeRange, _: &Hints, visit: VisitSamples<'_>) -> Result<(), Error> {
        if self.fails {
            return Err(Error::internal("the disk is gone"));
        }
        for _ in 0..2 {
            let samples = Samples {
                times: &[0],
                values: &[1.0],
            };
            let _ = visit(Labels::from_pairs([("__name__", "x")]), samples);
        }
        Ok(())
    }
}

#[test]
fn faults_of_a_storage_are_errors() {
    let query = Query::parse("x", Options::default()).unwrap();
    let error = query.instant(&Faulty { fails: true }, 0, LIMITS).unwrap_err();
    assert_eq!(error, Error::internal("the disk is gone"));
    let error = query.instant(&Faulty { fails: false }, 0, LIMITS).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Execution);
}

#[test]
fn times_and_steps_that_make_no_sense_are_refused() {
    let storage = MemoryStorage::default();
    let query = Query::parse("vector(1)", Options::default()).unwrap();
    for (start_ms, end_ms, step_ms) in [
        (1, 0, 1),
        (0, 1, 0),
        (0, 1, -1),
        (i64::MIN, 0, 1),
        (0, i64::MAX, 1),
    ] {
        let error = query
            .range(&storage, start_ms, end_ms, step_ms, LIMITS)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadData, "{start_ms} {end_ms} {step_ms}");
    }
    assert!(query.instant(&storage, i64::MAX, LIMITS).is_err());
    let string = Query::parse("\"a\"", Options::default()).unwrap();
    assert_eq!(
        string.range(&storage, 0, 1, 1, LIMITS).unwrap_err().kind,
        ErrorKind::BadData
    );
    let matrix = Query::parse("x[5m]", Options::default()).unwrap();
    assert_eq!(
        matrix.range(&storage, 0, 1, 1, LIMITS).unwrap_err().kind,
        ErrorKind::BadData
    );
    assert!(matches!(matrix.instant(&storage, 0, LIMITS), Ok(Value::Matrix(series)) if series.is_empty()));
}
