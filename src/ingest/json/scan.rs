//! The scanner itself: a place in one JSON text, and the steps between the members of objects and arrays.

use std::fmt;

/// What kind of value stands somewhere, in the words of error messages.
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
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        })
    }
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Byte of the body at which it stops being JSON, from 0.
    pub offset: usize,
    /// What was expected there.
    pub message: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "malformed json at byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for Malformed {}

/// A place in one JSON text. Every step either moves it behind a well-formed piece or says what is malformed.
///
/// Two things keep it fast. It is `Copy`: the hot steps leave what is rare to functions that get a copy, so that the
/// place can stay in a register. And the hot steps branch on what they find instead of computing the place from it:
/// the processor guesses branches and runs ahead, but has to wait for a sum.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    /// Stands before the first byte. The whole body is checked to be UTF-8 here, once and at the speed of memory,
    /// so that every later piece of it is text already.
    pub fn new(body: &'a [u8]) -> Result<Self, Malformed> {
        match std::str::from_utf8(body) {
            Ok(text) => Ok(Self {
                text,
                bytes: body,
                at: 0,
            }),
            Err(fault) => Err(Malformed {
                offset: fault.valid_up_to(),
                message: "invalid utf-8",
            }),
        }
    }

    /// The place, in bytes from the start.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns to a place that [`Scanner::at`] gave before.
    #[inline]
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The text from `start` to `end`: places between whole values, hence between whole characters.
    #[inline]
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Steps over `expected` if the text goes on with exactly these bytes.
    #[inline(always)]
    pub fn eat<const N: usize>(&mut self, expected: &[u8; N]) -> bool {
        if self.ahead::<N>() != Some(expected) {
            return false;
        }
        self.at += N;
        true
    }

    /// Steps over a member's name and its colon if the text goes on with exactly this name in quotes, then a colon.
    /// `name` must be free of quotes and backslashes, or it could reach beyond the name in the text.
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

    /// What has not been stepped over yet.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next `N` bytes, if there are as many; the place does not move.
    #[inline(always)]
    pub fn ahead<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>())
    }

    /// The byte behind any whitespace, which is stepped over.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        match self.ahead::<2>() {
            Some([byte, _]) if *byte > b' ' => Some(*byte),
            // One space behind each colon and comma is how several common libraries write.
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

    /// The kind of the value that comes next, by its first byte.
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

    /// Steps into the object or array whose opening bracket is next; `false` when it is empty, and then behind it.
    #[inline(always)]
    pub fn open(&mut self, close: u8) -> Result<bool, Malformed> {
        self.at += 1;
        let empty = self.peek() == Some(close);
        self.at += usize::from(empty);
        Ok(!empty)
    }

    /// Steps over the comma before the next member, or over `close`, which says `false`.
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

    /// Steps over the colon behind a member's name.
    #[inline]
    pub fn colon(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.malformed("expected `:`")),
        }
    }

    /// Steps over `null`.
    #[inline]
    pub fn null(&mut self) -> Result<(), Malformed> {
        if self.eat(b"null") {
            Ok(())
        } else {
            Err(self.malformed("expected `null`"))
        }
    }

    /// Steps over `true` or `false`.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        if self.eat(b"true") {
            Ok(true)
        } else if self.eat(b"false") {
            Ok(false)
        } else {
            Err(self.malformed("expected `true` or `false`"))
        }
    }

    /// Nothing but whitespace may follow.
    pub fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("expected the end of the body")),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn malformed(self, message: &'static str) -> Malformed {
        let message = if self.at >= self.bytes.len() {
            "the body ends too early"
        } else {
            message
        };
        Malformed {
            offset: self.at.min(self.bytes.len()),
            message,
        }
    }
}

/// Equality of two slices of one length. Names are short: two loads that overlap cost less than a call.
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
