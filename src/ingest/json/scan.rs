//! The scanner: a position in a JSON text, and the steps between the members of objects and arrays.

use std::fmt;

/// The kind of a value, as named in error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    /// `true` or `false`
    Boolean,
    /// any number
    Number,
    /// any string
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed json at byte {offset}: {message}")]
pub struct Malformed {
    /// Offset in the body of the first byte that is not valid JSON.
    pub offset: usize,
    /// What was expected at that offset.
    pub message: &'static str,
}

/// A position in a JSON text. Every step either moves past a well-formed token or returns an error.
///
/// Two techniques make it fast. It is `Copy`: hot steps pass a copy to out-of-line functions for rare cases, so that
/// the position can stay in a register. And hot steps branch on the input instead of computing the position from it,
/// because the CPU predicts branches and runs ahead, but has to wait for a sum.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    /// Starts before the first byte. Checks the whole body for valid UTF-8, which runs at the speed of memory, so that
    /// all slices of it are text without further checks.
    pub fn new(body: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(body).map_err(|fault| Malformed {
            offset: fault.valid_up_to(),
            message: "invalid utf-8",
        })?;
        Ok(Self {
            text,
            bytes: body,
            at: 0,
        })
    }

    /// The position in bytes.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Moves to a position returned by [`Scanner::at`].
    #[inline]
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The text from `start` to `end`. Both are positions between values, so they are at character boundaries.
    #[inline]
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Skips `expected` if the text continues with exactly these bytes.
    #[inline(always)]
    pub fn eat<const N: usize>(&mut self, expected: &[u8; N]) -> bool {
        if self.ahead::<N>() != Some(expected) {
            return false;
        }
        self.at += N;
        true
    }

    /// Skips a member's name and colon if the text continues with exactly this name in quotes and a colon. `name` must
    /// not contain quotes or backslashes, because it could then match past the end of the name in the text.
    #[inline(always)]
    pub fn eat_name(&mut self, name: &[u8]) -> bool {
        let length = name.len();
        let Some(text) = self.bytes.get(self.at..).and_then(|rest| rest.get(..length + 3)) else {
            return false;
        };
        if text[0] != b'"'
            || text[length + 1] != b'"'
            || text[length + 2] != b':'
            || !same(&text[1..=length], name)
        {
            return false;
        }
        self.at += length + 3;
        true
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The text from the position on.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next `N` bytes, if there are that many. The position does not change.
    #[inline(always)]
    pub fn ahead<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>())
    }

    /// Skips white space and returns the byte after it.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        match self.ahead::<2>() {
            Some([byte, _]) if *byte > b' ' => Some(*byte),
            // Several common libraries write one space after each colon and comma.
            Some([b' ', byte]) if *byte > b' ' => {
                self.at += 1;
                Some(*byte)
            }
            _ => {
                self.at = self.behind_whitespace();
                self.bytes.get(self.at).copied()
            }
        }
    }

    #[inline(never)]
    fn behind_whitespace(self) -> usize {
        let blank = self
            .rest()
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.at + blank.count()
    }

    /// The kind of the next value, determined by its first byte.
    #[inline]
    pub fn kind(&mut self) -> Result<Kind, Malformed> {
        Ok(match self.peek() {
            Some(b'"') => Kind::String,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'n') => Kind::Null,
            Some(b't' | b'f') => Kind::Boolean,
            _ => return Err(self.malformed("expected a value")),
        })
    }

    /// Enters the object or array whose opening bracket is next. Returns `false` if it is empty; it is then skipped.
    #[inline(always)]
    pub fn open(&mut self, close: u8) -> Result<bool, Malformed> {
        self.at += 1;
        let empty = self.peek() == Some(close);
        self.at += usize::from(empty);
        Ok(!empty)
    }

    /// Skips the comma before the next member and returns `true`, or skips `close` and returns `false`.
    #[inline(always)]
    pub fn more(&mut self, close: u8) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ if close == b'}' => Err(self.malformed("expected `,` or `}`")),
            _ => Err(self.malformed("expected `,` or `]`")),
        }
    }

    /// Skips the colon after a member's name.
    #[inline]
    pub fn colon(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b':') => self.at += 1,
            _ => return Err(self.malformed("expected `:`")),
        }
        Ok(())
    }

    /// Skips `null`.
    #[inline]
    pub fn null(&mut self) -> Result<(), Malformed> {
        match self.eat(b"null") {
            true => Ok(()),
            false => Err(self.malformed("expected `null`")),
        }
    }

    /// Parses `true` or `false`.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        let value = self.eat(b"true");
        match value || self.eat(b"false") {
            true => Ok(value),
            false => Err(self.malformed("expected `true` or `false`")),
        }
    }

    /// Checks that only white space follows.
    pub fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("expected the end of the body")),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn malformed(self, message: &'static str) -> Malformed {
        let length = self.bytes.len();
        Malformed {
            offset: self.at.min(length),
            message: if self.at < length {
                message
            } else {
                "the body ends too early"
            },
        }
    }
}

/// Compares two slices of equal length. Names are short: two overlapping loads cost less than a call of `memcmp`.
#[inline(always)]
fn same(one: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((bytes.first_chunk::<N>()?, bytes.last_chunk::<N>()?))
    }
    match one.len() {
        4..8 => ends::<4>(one) == ends::<4>(other),
        8..=16 => ends::<8>(one) == ends::<8>(other),
        _ => one == other,
    }
}
