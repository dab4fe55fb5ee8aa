//! The key is sent to the service only.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::fake::{Endpoint, Script};
use super::{KEY, evaluate, options, rows, rule};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// A run in which most requests fail once, and one that is refused; returns the error of the latter.
fn troubles() -> String {
    let world = rows()
        .with_due((1..=8).map(|number| rule(number, if number % 2 == 0 { "hot" } else { "none" })))
        .with_script(Endpoint::Due, [Script::Status(503), Script::Breaks])
        .with_script(
            Endpoint::Query,
            [Script::Breaks, Script::Status(500), Script::Status(400)],
        )
        .with_script(Endpoint::Verdict, [Script::DoesThen(500), Script::Status(404)])
        .with_script(Endpoint::Verdict, [Script::Status(400)]);
    let (_, outcome) = evaluate(world, options());
    outcome.unwrap();
    let (_, outcome) = evaluate(rows().with_always(Endpoint::Due, 401), options());
    let error = outcome.unwrap_err();
    format!("{error} {error:?}")
}

#[test]
fn no_log_line_and_no_error_shows_the_key() {
    let lines = Lines::default();
    let subscriber = || {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(lines.clone())
            .finish()
    };
    // With only one subscriber, a log statement caches the interest of the first thread that reaches it, and a
    // concurrent test would disable it for all threads.
    let _second = tracing::Dispatch::new(subscriber());
    let error = tracing::subscriber::with_default(subscriber(), troubles);
    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for word in [
        "evaluating",
        "trying again",
        "verdict recorded",
        "the rule is gone",
        "not recorded",
    ] {
        assert!(lines.contains(word), "`{word}` is missing in:\n{lines}");
    }
    for text in [lines, error] {
        assert!(!text.contains(&KEY["svc_i_".len()..]), "{text}");
    }
}
