//! Strings: scanned eight bytes at a time, and borrowed if they have no escapes.

use std::borrow::Cow;

use super::scan::{Malformed, Scanner};

const ONES: u64 = u64::MAX / 0xff;
const HIGHS: u64 = ONES * 0x80;

/// A string between its quotes. Its escapes are validated but not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// The string, if it has no escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        (!self.escaped).then_some(self.raw)
    }

    /// The string. `buffer` is only used if there are escapes to replace.
    #[inline]
    pub fn get<'b>(self, buffer: &'b mut String) -> &'b str
    where
        'a: 'b,
    {
        if !self.escaped {
            return self.raw;
        }
        buffer.clear();
        self.unescape(buffer);
        buffer
    }

    /// The string, owned only if there are escapes to replace.
    pub fn into_cow(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut owned = String::with_capacity(self.raw.len());
        self.unescape(&mut owned);
        Cow::Owned(owned)
    }

    fn unescape(self, out: &mut String) {
        let mut rest = self.raw;
        while let Some(place) = rest.find('\\') {
            out.push_str(&rest[..place]);
            let (character, length) = escape(&rest.as_bytes()[place..]).unwrap_or(('\u{fffd}', 2));
            out.push(character);
            rest = &rest[place + length..];
        }
        out.push_str(rest);
    }
}

impl<'a> Scanner<'a> {
    /// Parses the next string.
    #[inline]
    pub fn string(&mut self) -> Result<Text<'a>, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("expected a string"));
        }
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.next_special() {
                Some(b'"') => {
                    let raw = self.slice(start, self.at);
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    match escape(&self.bytes[self.at..]) {
                        Some((_, length)) => self.at += length,
                        None => return Err(self.malformed("not an escape of a character")),
                    }
                }
                Some(_) => return Err(self.malformed("a control character in a string must be escaped")),
                None => return Err(self.malformed("expected the end of the string")),
            }
        }
    }

    /// Parses a member's name and skips its colon.
    #[inline]
    pub fn name(&mut self) -> Result<Text<'a>, Malformed> {
        let name = self.string()?;
        self.colon()?;
        Ok(name)
    }

    /// Moves to the next special byte of a string: a quote, a backslash or a control character.
    #[inline(always)]
    fn next_special(&mut self) -> Option<u8> {
        while let Some(eight) = self.ahead::<8>() {
            let special = specials(u64::from_le_bytes(*eight));
            if special == 0 {
                self.at += 8;
                continue;
            }
            self.at += special.trailing_zeros() as usize / 8;
            return self.bytes.get(self.at).copied();
        }
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }
}

/// Sets the high bit of each special byte. Bits above the lowest one set may be wrong, because a borrow propagates
/// upwards from a hit; the lowest is always right. The lowest byte is the first, since the word is read as
/// little-endian.
#[inline(always)]
fn specials(eight: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = eight.wrapping_sub(ONES * 0x20) & !eight;
    (zero(eight ^ (ONES * u64::from(b'"'))) | zero(eight ^ (ONES * u64::from(b'\\'))) | control) & HIGHS
}

/// The character of the escape at the start of `bytes`, and the length of the escape.
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let character = match bytes.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(bytes),
        _ => return None,
    };
    Some((character, 2))
}

fn unicode_escape(bytes: &[u8]) -> Option<(char, usize)> {
    let first = hex4(bytes.get(2..6)?)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    // One half of a surrogate pair, which is only valid together with the other half.
    let second = match bytes.get(6..8)? {
        b"\\u" => hex4(bytes.get(8..12)?)?,
        _ => return None,
    };
    let paired = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
    let code = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
    paired.then_some((char::from_u32(code)?, 12))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| {
        Some(code << 4 | char::from(*digit).to_digit(16)?)
    })
}
