//! A batch: the messages that one request writes, in the order of their arrival. Pure.

use std::collections::VecDeque;

/// Bounds of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most messages.
    pub messages: usize,
    /// The most bytes of lines. A single longer line is a batch of its own.
    pub bytes: usize,
}

/// A message in a batch: its line, if it has one, and what waits for its end.
#[derive(Debug)]
pub struct Entry<T> {
    /// A line without its line break. None for what could not be read: it is only acknowledged, in its turn.
    pub line: Option<String>,
    /// Is handed back when the message is done with.
    pub ticket: T,
}

/// Messages to be written by one request.
#[derive(Debug)]
pub struct Batch<T> {
    entries: VecDeque<Entry<T>>,
    bytes: usize,
}

impl<T> Batch<T> {
    /// A batch without messages.
    pub fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether the entry may join: an empty batch takes any.
    pub fn has_room_for(&self, entry: &Entry<T>, bounds: Bounds) -> bool {
        let fits = self.entries.len() < bounds.messages && self.bytes + entry.bytes() <= bounds.bytes;
        self.entries.is_empty() || fits
    }

    /// Whether no further message may join.
    pub fn is_full(&self, bounds: Bounds) -> bool {
        self.entries.len() >= bounds.messages || self.bytes >= bounds.bytes
    }

    /// Adds a message behind the others.
    pub fn push(&mut self, entry: Entry<T>) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The body of the request; empty if no message has a line.
    pub fn body(&self) -> String {
        let mut body = String::with_capacity(self.bytes);
        for line in self.lines() {
            body.push_str(line);
            body.push('\n');
        }
        body
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| entry.line.as_deref())
    }

    /// Number of messages that have a line.
    pub fn points(&self) -> usize {
        self.lines().count()
    }

    /// The point that starts at this physical line of the body, counted from 1. Line breaks inside of texts count.
    pub fn point_at(&self, number: usize) -> Option<&str> {
        let mut first = 1;
        self.lines().find(|line| {
            let found = first == number;
            first += line.matches('\n').count() + 1;
            found
        })
    }

    /// Takes the first half of the messages that have a line out of a batch of at least two. None if there is only one,
    /// or none.
    pub fn split(&mut self) -> Option<Self> {
        let points = self.points();
        if points < 2 {
            return None;
        }
        let mut half = Self::new();
        let mut taken = 0;
        while taken < points / 2 {
            let entry = self.entries.pop_front()?;
            self.bytes -= entry.bytes();
            taken += usize::from(entry.line.is_some());
            half.push(entry);
        }
        Some(half)
    }

    /// The tickets, in the order of arrival.
    pub fn into_tickets(self) -> impl Iterator<Item = T> {
        self.entries.into_iter().map(|entry| entry.ticket)
    }
}

impl<T> Entry<T> {
    fn bytes(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.len() + 1)
    }
}
