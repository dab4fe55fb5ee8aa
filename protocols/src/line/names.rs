//! The names of a line's tags, or of its fields. They are usually those of the line before, in the same order: then they
//! are neither scanned nor compared with each other again.

use super::scan::{self, Token};
use crate::names;

/// The names of a line so far, and behind them the others of the line before.
#[derive(Default)]
pub(super) struct Names<'a> {
    known: Vec<Token<'a>>,
    /// Number of names that the line has.
    used: usize,
    /// Whether it is known that no name occurs twice.
    differ: bool,
    /// Those of the line, to find one that occurs twice.
    compared: Vec<&'a [u8]>,
}

/// A name.
pub(super) struct Name<'a> {
    pub(super) token: Token<'a>,
    /// Where it ends.
    pub(super) end: usize,
    /// Whether the line before has it at the same place, behind the same names.
    pub(super) is_known: bool,
}

impl<'a> Names<'a> {
    /// Begins a line.
    pub(super) fn begin(&mut self) {
        self.used = 0;
    }

    /// Number of names that the line has.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// The name that begins at `at`. It is one of the line's names if `=` follows it.
    #[inline]
    pub(super) fn next(&mut self, body: &'a [u8], at: usize) -> Name<'a> {
        if let Some(known) = self.known.get(self.used) {
            let end = at + known.raw.len();
            if body.get(end) == Some(&b'=') && body[at..end] == *known.raw {
                self.used += 1;
                return Name {
                    token: *known,
                    end,
                    is_known: true,
                };
            }
        }
        self.known.truncate(self.used);
        let (token, end) = scan::token::<true>(body, at);
        if body.get(end) == Some(&b'=') {
            self.known.push(token);
            self.used += 1;
            self.differ = false;
        }
        Name {
            token,
            end,
            is_known: false,
        }
    }

    /// Ends the line: a name that occurs twice, if one does.
    pub(super) fn twice(&mut self) -> Option<&'a [u8]> {
        self.known.truncate(self.used);
        if self.differ {
            return None;
        }
        self.compared.clear();
        self.compared.extend(self.known.iter().map(|name| name.raw));
        let twice = names::twice(&mut self.compared);
        self.differ = twice.is_none();
        twice
    }
}

#[cfg(test)]
mod tests {
    use crate::line::{Precision, parse};
    use crate::recorder::Recorder;

    fn events(body: &str) -> Vec<String> {
        let mut recorder = Recorder::default();
        parse(body.as_bytes(), Precision::Nanoseconds, 42, &mut recorder);
        recorder.events
    }

    /// A few names, of which some begin as others do, some are escaped, and one is empty.
    fn pairs(random: &mut fastrand::Rng, value: impl Fn(&mut fastrand::Rng) -> &'static str) -> String {
        const NAMES: [&str; 9] = ["a", "ab", "b", "a\\=b", "a\\", "b\\,c", "größe", "a\tb", ""];
        let count = random.usize(1..5);
        // Often ascending, as agents send them.
        let first = random.usize(0..3);
        let name = |random: &mut fastrand::Rng, place| match random.u8(0..5) {
            0 => NAMES[random.usize(0..NAMES.len())],
            _ => NAMES[first + place],
        };
        let pair = |place| {
            let name = name(random, place);
            format!(
                "{name}{}{}",
                ["=", "=", "=", ""][random.usize(0..4)],
                value(random)
            )
        };
        (0..count).map(pair).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_line_is_read_alike_whatever_stands_before_it() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let tag = |random: &mut fastrand::Rng| ["x", "y\\ z", "\"q\"", ""][random.usize(0..4)];
        let field = |random: &mut fastrand::Rng| ["1", "2i", "\"s, t\"", "true", "bad"][random.usize(0..5)];
        let mut points = 0;
        for _ in 0..300 {
            let lines: Vec<String> = (0..random.usize(2..12))
                .map(|_| {
                    let tags = match random.bool() {
                        true => format!(",{}", pairs(&mut random, tag)),
                        false => String::new(),
                    };
                    format!("m{tags} {} 7", pairs(&mut random, field))
                })
                .collect();
            let alone = lines.iter().enumerate().flat_map(|(index, line)| {
                let number = index + 1;
                let alone = events(line).into_iter();
                alone.map(move |event| format!("{number}{}", &event[1..]))
            });
            let together = events(&lines.join("\n"));
            assert_eq!(together, alone.collect::<Vec<_>>(), "{lines:?}");
            points += together.iter().filter(|event| !event.contains("refused")).count();
        }
        assert!(points > 100, "{points} points");
    }
}
