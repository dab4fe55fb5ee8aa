//! Where tokens, strings, lines and entries end. All positions are indexes into the body.

use std::borrow::Cow;

use crate::bytewise::{below, equal};

/// A part of an entry, as it stands in the body.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) raw: &'a [u8],
    /// Whether it has a backslash.
    pub(super) escaped: bool,
    /// Whether it has no byte that JSON escapes.
    pub(super) plain: bool,
}

/// The token that begins at `at`, and where it ends: at a comma, a space, an LF or, if `EQUALS`, at `=`, unless a
/// backslash stands before them.
#[inline]
pub(super) fn token<const EQUALS: bool>(body: &[u8], at: usize) -> (Token<'_>, usize) {
    let (mut end, mut escaped, mut plain) = (at, false, true);
    loop {
        end = skip_ordinary::<EQUALS>(body, end);
        match body.get(end) {
            None | Some(b',' | b' ' | b'\n') => break,
            Some(b'=') if EQUALS => break,
            Some(b'\\') => {
                (escaped, plain) = (true, false);
                end += if matches!(body.get(end + 1), Some(b',' | b'=' | b' ')) {
                    2
                } else {
                    1
                };
            }
            Some(_) => (end, plain) = (end + 1, false),
        }
    }
    let raw = &body[at..end];
    (Token { raw, escaped, plain }, end)
}

/// Behind the bytes, from `at` on, that neither end a token nor need a closer look: not up to the space, a comma, a quote,
/// a backslash, `=` if `EQUALS`.
#[inline]
pub(super) fn skip_ordinary<const EQUALS: bool>(body: &[u8], mut at: usize) -> usize {
    while let Some(Ok(bytes)) = body.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(bytes);
        let mut found = below(word, b' ' + 1);
        found |= equal(word, b',') | equal(word, b'"') | equal(word, b'\\');
        if EQUALS {
            found |= equal(word, b'=');
        }
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let ordinary =
        |byte: &u8| *byte > b' ' && !matches!(byte, b',' | b'"' | b'\\') && !(EQUALS && *byte == b'=');
    let rest = &body[at..];
    at + rest.iter().position(|byte| !ordinary(byte)).unwrap_or(rest.len())
}

/// The first space from `at` on, if no backslash and no byte below the space, such as an LF, stands before it.
#[inline]
pub(super) fn space(body: &[u8], mut at: usize) -> Option<usize> {
    while let Some(Ok(bytes)) = body.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(bytes);
        let found = below(word, b' ' + 1) | equal(word, b'\\');
        if found != 0 {
            at += (found.trailing_zeros() / 8) as usize;
            return (body[at] == b' ').then_some(at);
        }
        at += 8;
    }
    let ends = |byte: &u8| *byte <= b' ' || *byte == b'\\';
    let end = at + body[at..].iter().position(ends)?;
    (body[end] == b' ').then_some(end)
}

/// Takes the backslashes away that stand before one of `escapable`; another is itself.
#[inline]
pub(super) fn unescape<'a>(token: Token<'a>, escapable: &[u8]) -> Cow<'a, [u8]> {
    match token.escaped {
        false => Cow::Borrowed(token.raw),
        true => Cow::Owned(unescaped(token.raw, escapable)),
    }
}

fn unescaped(raw: &[u8], escapable: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escapes = byte == b'\\' && bytes.peek().is_some_and(|next| escapable.contains(next));
        text.push(if escapes {
            bytes.next().unwrap_or(byte)
        } else {
            byte
        });
    }
    text
}

/// The string whose opening quote stands before `at`, and where its closing quote stands; `None` without one.
#[inline]
pub(super) fn string(body: &[u8], at: usize) -> Option<(Token<'_>, usize)> {
    let (mut end, mut escaped) = (at, false);
    loop {
        match body.get(end)? {
            b'"' => break,
            b'\\' => {
                escaped = true;
                end += if matches!(body.get(end + 1), Some(b'"' | b'\\')) {
                    2
                } else {
                    1
                };
            }
            _ => end += 1,
        }
    }
    let raw = &body[at..end];
    let token = Token {
        raw,
        escaped,
        plain: false,
    };
    Some((token, end))
}

/// Behind the blanks that begin at `at`.
#[inline]
pub(super) fn skip_blanks(body: &[u8], mut at: usize) -> usize {
    while matches!(body.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Where the next line begins, if this one ends at `at`: by LF, CR LF, or the end of the body with or without a CR.
#[inline]
pub(super) fn line_end(body: &[u8], at: usize) -> Option<usize> {
    match body.get(at) {
        None => Some(at),
        Some(b'\n') => Some(at + 1),
        Some(b'\r') => match body.get(at + 1) {
            None => Some(at + 1),
            Some(b'\n') => Some(at + 2),
            Some(_) => None,
        },
        Some(_) => None,
    }
}

/// Behind the next LF.
pub(super) fn next_line(body: &[u8], at: usize) -> usize {
    let newline = body[at..].iter().position(|byte| *byte == b'\n');
    newline.map_or(body.len(), |offset| at + offset + 1)
}

/// Where the next entry begins behind one that is refused. Lines inside of its strings are not entries, so that nothing
/// is stored out of the middle of a string; but a string without an end does not take the rest of the body along.
pub(super) fn next_entry(body: &[u8], start: usize) -> usize {
    let mut at = start;
    // Measurement and tags, in which quotes have no meaning.
    while let Some(byte) = body.get(at) {
        match byte {
            b'\n' => return at + 1,
            b' ' => break,
            b'\\' if matches!(body.get(at + 1), Some(b',' | b'=' | b' ')) => at += 2,
            _ => at += 1,
        }
    }
    while let Some(byte) = body.get(at) {
        at += 1;
        match byte {
            b'\n' => return at,
            b'=' if body.get(at) == Some(&b'"') => match string(body, at + 1) {
                Some((_, end)) => at = end + 1,
                None => return next_line(body, at),
            },
            _ => {}
        }
    }
    at
}

/// LFs of a text.
pub(super) fn newlines(text: &[u8]) -> u32 {
    text.iter().map(|byte| u32::from(*byte == b'\n')).sum()
}
