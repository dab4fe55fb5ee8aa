//! The names of a line's tags, or of its fields. They are usually those of an earlier line, in the same order: then they are
//! neither scanned nor compared with each other again.

use super::scan::{self, Token};
use crate::names;

/// The names of a line so far, and behind them the others of an earlier line.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// Each has been followed by `=`.
    known: Vec<Token<'a>>,
    /// Number of names that the line has.
    used: usize,
    /// Whether the known names differ; false if they have not been compared.
    differ: bool,
    /// Those of the line, to find one that occurs twice.
    compared: Vec<&'a [u8]>,
}

/// A name.
pub(super) struct Name<'a> {
    pub(super) token: Token<'a>,
    /// Where it ends.
    pub(super) end: usize,
    /// Whether it was known at this place. Otherwise, all names that were known from here on are forgotten.
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

    /// Ends the line.
    ///
    /// # Errors
    /// A name that occurs twice.
    pub(super) fn end(&mut self) -> Result<(), &'a [u8]> {
        if self.differ {
            return Ok(());
        }
        self.known.truncate(self.used);
        self.compared.clear();
        self.compared.extend(self.known.iter().map(|name| name.raw));
        match names::twice(&mut self.compared) {
            Some(twice) => Err(twice),
            None => {
                self.differ = true;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::line::{FIELDS_MAX, Precision, parse};
    use crate::recorder::Recorder;

    fn events(body: &[u8]) -> Vec<String> {
        let mut recorder = Recorder::default();
        parse(body, Precision::Nanoseconds, 42, &mut recorder);
        recorder.events
    }

    /// So many pairs, with one of the values each. Some names begin as others do, are escaped, empty, or not UTF-8.
    fn pairs(random: &mut fastrand::Rng, count: usize, values: &[&str]) -> Vec<u8> {
        const NAMES: [&[u8]; 10] = [
            b"a",
            b"ab",
            b"b",
            b"a\\=b",
            b"a\\",
            b"b\\,c",
            "größe".as_bytes(),
            b"a\tb",
            b"",
            b"b\xff",
        ];
        // Often in the same order, as agents send them.
        let first = random.usize(0..3);
        let pair = |place: usize| {
            let name = match random.u8(0..20) {
                0..4 if count < 10 => NAMES[random.usize(0..NAMES.len())].to_vec(),
                _ => match NAMES[..3].get(first + place) {
                    Some(name) => name.to_vec(),
                    None => format!("n{place}").into_bytes(),
                },
            };
            // Now and then without a value.
            let equals = if random.usize(0..4 * count) == 0 { "" } else { "=" };
            let value = values[random.usize(0..values.len())];
            [&name[..], equals.as_bytes(), value.as_bytes()].concat()
        };
        let mut pairs: Vec<Vec<u8>> = (0..count).map(pair).collect();
        if random.u8(0..8) == 0 {
            // A name that occurs twice, however long the line is.
            let twice = pairs[random.usize(0..count)].clone();
            pairs[random.usize(0..count)] = twice;
        }
        pairs.join(&b","[..])
    }

    #[test]
    fn a_line_is_read_alike_whatever_stands_before_it() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut points = 0;
        let mut remembering = Recorder::remembering();
        for _ in 0..300 {
            // Few names, more than are compared with each other, or about as many as a line may have.
            let counts = [1..5, 1..5, 12..20, FIELDS_MAX - 1..FIELDS_MAX + 3][random.usize(0..4)].clone();
            let mut line = || {
                let mut line = ["m", "m", "n"][random.usize(0..3)].as_bytes().to_vec();
                if random.bool() {
                    let count = random.usize(counts.clone());
                    let tags = pairs(&mut random, count, &["x", "y\\ z", "\"q\""]);
                    line.extend([&b","[..], &tags].concat());
                }
                let count = random.usize(counts.clone());
                let fields = match random.u8(0..6) {
                    0 => pairs(&mut random, count, &["1", "bad"]),
                    _ => pairs(&mut random, count, &["1", "2i", "\"s, t\"", "true"]),
                };
                let timestamp = [" 7", " 7", " 8", "", " x"][random.usize(0..5)];
                [&line[..], b" ", &fields, timestamp.as_bytes()].concat()
            };
            let lines: Vec<Vec<u8>> = (0..10).map(|_| line()).collect();
            let alone = lines.iter().enumerate().flat_map(|(index, line)| {
                let alone = events(line).into_iter();
                alone.map(move |event| format!("{}{}", index + 1, &event[1..]))
            });
            let together = events(&lines.join(&b"\n"[..]));
            assert_eq!(together, alone.collect::<Vec<_>>());
            // Series of earlier bodies are not read again.
            parse(
                &lines.join(&b"\n"[..]),
                Precision::Nanoseconds,
                42,
                &mut remembering,
            );
            assert_eq!(std::mem::take(&mut remembering.events), together);
            points += together.iter().filter(|event| !event.contains("refused")).count();
        }
        assert!(points > 300, "{points} points");
        assert!(remembering.recalled > 50, "{} recalled", remembering.recalled);
    }
}
