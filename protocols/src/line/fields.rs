//! Fields, their values, and the timestamp behind them.

use super::decimal;
use super::key::{ESCAPABLE, text};
use super::names::{Name, Names};
use super::scan;
use super::{Entry, FIELDS_MAX, Read};
use crate::Refusal;
use crate::sink::{Field, Value};
use crate::timestamp::nanoseconds;

/// The fields of a line. Its buffers serve all lines of a body.
#[derive(Default)]
pub(super) struct Fields<'a> {
    /// A field for each known name, as far as both lists reach; the rest is of an earlier line. An unknown name truncates
    /// it.
    list: Vec<Field<'a>>,
    /// Their names as they stand in the body: names that differ there differ.
    names: Names<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of a line that was read.
    pub(super) fn of_line(&self) -> &[Field<'a>] {
        &self.list[..self.names.len()]
    }
}

/// Reads what follows the key, whose space stands at `at`.
pub(super) fn read<'a>(entry: &Entry<'a>, at: usize, fields: &mut Fields<'a>) -> Result<Read, Refusal<'a>> {
    let body = entry.body;
    fields.names.begin();
    let mut newlines = 0;
    let mut at = scan::skip_blanks(body, at);
    if scan::line_end(body, at).is_some() {
        return Err(Refusal::NoFields);
    }
    loop {
        let place = fields.names.len();
        let Name {
            token: name,
            end: name_end,
            is_known,
        } = fields.names.next(body, at);
        if !is_known {
            fields.list.truncate(place);
        }
        if name.raw.is_empty() {
            return Err(Refusal::EmptyName);
        }
        if body.get(name_end) != Some(&b'=') {
            return Err(Refusal::NoFieldValue(name.raw));
        }
        if place == FIELDS_MAX {
            return Err(Refusal::TooManyFields);
        }
        let start = name_end + 1;
        let value;
        if body.get(start) == Some(&b'"') {
            let (string, end) = scan::string(body, start + 1).ok_or(Refusal::OpenString(name.raw))?;
            newlines += scan::newlines(string.raw);
            value = Value::Text(text(scan::unescape(string, b"\"\\"))?);
            at = end + 1;
            if !matches!(body.get(at), Some(b',' | b' ')) && scan::line_end(body, at).is_none() {
                return Err(Refusal::BehindString(name.raw));
            }
        } else {
            at = plain_end(body, start);
            let token = &body[start..at];
            if token.is_empty() {
                return Err(Refusal::NoFieldValue(name.raw));
            }
            value = plain(token).ok_or(Refusal::NotAValue(token))?;
        }
        match fields.list.get_mut(place) {
            Some(field) => field.value = value,
            None => {
                let name = text(scan::unescape(name, ESCAPABLE))?;
                fields.list.push(Field { name, value });
            }
        }
        if body.get(at) != Some(&b',') {
            break;
        }
        at += 1;
    }
    fields.names.end().map_err(Refusal::NameTwice)?;
    let (timestamp_ns, next) = timestamp(entry, at)?;
    Ok(Read {
        timestamp_ns,
        next,
        newlines: newlines + 1,
    })
}

/// Where a value that is no string, or a timestamp, ends.
#[inline]
fn plain_end(body: &[u8], at: usize) -> usize {
    let mut end = scan::skip_ordinary::<false>(body, at);
    while !matches!(body.get(end), None | Some(b',' | b' ' | b'\t' | b'\n')) {
        end = scan::skip_ordinary::<false>(body, end + 1);
    }
    match body[at..end].last() {
        Some(b'\r') if matches!(body.get(end), None | Some(b'\n')) => end - 1,
        _ => end,
    }
}

/// A number or a boolean.
#[inline]
fn plain<'a>(token: &[u8]) -> Option<Value<'a>> {
    if let Some(number) = decimal::short_number(token) {
        return Some(Value::Number(number));
    }
    match token {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => return Some(Value::Bool(true)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    let is_spelling =
        |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E' | b'i' | b'u');
    // `parse` takes `inf`, `nan` and their likes.
    if !token.iter().all(is_spelling) {
        return None;
    }
    let token = std::str::from_utf8(token).ok()?;
    let number = if let Some(integer) = token.strip_suffix('i') {
        integer.parse::<i64>().ok()? as f64
    } else if let Some(integer) = token.strip_suffix('u') {
        integer.parse::<u64>().ok()? as f64
    } else {
        token.parse::<f64>().ok().filter(|number| number.is_finite())?
    };
    Some(Value::Number(number))
}

/// The timestamp that may follow the fields, and where the next line begins.
fn timestamp<'a>(entry: &Entry<'a>, at: usize) -> Result<(i64, usize), Refusal<'a>> {
    let body = entry.body;
    let at = scan::skip_blanks(body, at);
    if let Some(next) = scan::line_end(body, at) {
        return Ok((entry.now_ns, next));
    }
    let end = plain_end(body, at);
    let token = &body[at..end];
    let timestamp = decimal::integer(token).ok_or(Refusal::NotATimestamp(token))?;
    let timestamp = nanoseconds(timestamp, entry.precision.unit_ns())?;
    let next = scan::line_end(body, scan::skip_blanks(body, end)).ok_or(Refusal::BehindTimestamp)?;
    Ok((timestamp, next))
}
