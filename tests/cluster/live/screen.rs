//! What a person sees: a page that is redrawn on a terminal, lines elsewhere.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use super::keys::HELP;

/// Between two pages, and between two lines about the state.
const PAGE_PERIOD: Duration = Duration::from_secs(1);
const LINE_PERIOD: Duration = Duration::from_secs(5);
/// Events that a page has room for.
const EVENTS_SHOWN: usize = 12;

pub struct Screen {
    is_terminal: bool,
    head: Vec<String>,
    began: Instant,
    drawn: Option<Instant>,
    events: Vec<String>,
    /// Whether the page is over: what is told from then on stays below it.
    is_over: bool,
}

impl Screen {
    pub fn new(head: Vec<String>) -> Self {
        let is_terminal = stdout().is_terminal();
        if is_terminal {
            // An empty page.
            print!("\x1b[2J");
        } else {
            for line in head.iter().map(String::as_str).chain(HELP) {
                println!("{line}");
            }
        }
        Screen {
            is_terminal,
            head,
            began: Instant::now(),
            drawn: None,
            events: Vec::new(),
            is_over: false,
        }
    }

    /// Says what has happened.
    pub fn tell(&mut self, event: &str) {
        let line = format!("{:7.1} s  {event}", self.began.elapsed().as_secs_f64());
        if !self.is_terminal || self.is_over {
            println!("{line}");
        }
        self.events.push(line);
        self.redraw();
    }

    /// Has the next page drawn at once.
    pub fn redraw(&mut self) {
        if self.is_terminal {
            self.drawn = None;
        }
    }

    /// Whether it is time to show the state again.
    pub fn is_due(&self) -> bool {
        let period = match self.is_terminal {
            true => PAGE_PERIOD,
            false => LINE_PERIOD,
        };
        self.drawn.is_none_or(|drawn| drawn.elapsed() >= period)
    }

    /// Shows the state: all lines on a terminal, else the last one.
    pub fn show(&mut self, page: &[String], line: &str) {
        self.drawn = Some(Instant::now());
        if !self.is_terminal {
            println!("{line}");
            return;
        }
        let events = &self.events[self.events.len().saturating_sub(EVENTS_SHOWN)..];
        let parts = [&self.head[..], page, events, &HELP.map(str::to_owned)];
        // From the upper left corner; each line clears its rest, and the last one what is below.
        let mut text = String::from("\x1b[H");
        for line in parts.join(&String::new()) {
            text.push_str(&line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        let mut out = stdout().lock();
        // A terminal that is gone ends the session by a signal.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// From now on, what is told is written below the page.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}
