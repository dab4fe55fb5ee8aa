//! NDJSON: a JSON object on each line, whose members are columns.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{COLUMNS_MAX, ROW_BYTES_MAX, Rows};

#[derive(Default)]
pub struct NdjsonReader {
    pub rows: Rows,
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    is_too_large: bool,
    /// Lines that were ended.
    lines: u64,
}

impl NdjsonReader {
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while !self.rows.is_full() {
            let rest = &bytes[taken..];
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
                self.keep(rest);
                return bytes.len();
            };
            taken += length + 1;
            if self.begun.is_empty() && !self.is_too_large {
                self.read_line(&rest[..length]);
            } else {
                self.keep(&rest[..length]);
                self.read_begun();
            }
        }
        taken
    }

    pub fn finish(&mut self) {
        self.read_begun();
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.is_too_large |= self.begun.len() + bytes.len() > ROW_BYTES_MAX;
        if self.is_too_large {
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }

    fn read_begun(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.is_too_large) {
            self.lines += 1;
            self.end_too_large();
        } else {
            self.read_line(&begun);
        }
        begun.clear();
        self.begun = begun;
    }

    fn end_too_large(&mut self) {
        let fault = format!("is longer than {ROW_BYTES_MAX} bytes");
        self.rows.end_faulty_row(Some(self.lines), fault);
    }

    fn read_line(&mut self, line: &[u8]) {
        self.lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if line.len() > ROW_BYTES_MAX {
            return self.end_too_large();
        }
        let Ok(line) = std::str::from_utf8(line) else {
            return self.rows.end_faulty_row(Some(self.lines), "is not UTF-8");
        };
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let mut fault = None;
        let members = Members {
            rows: &mut self.rows,
            fault: &mut fault,
        };
        let read = deserializer
            .deserialize_map(members)
            .and_then(|()| deserializer.end());
        match (read, fault) {
            (Ok(()), None) => self.rows.end_row(Some(self.lines)),
            (Ok(()), Some(fault)) => self.rows.end_faulty_row(Some(self.lines), fault),
            (Err(error), _) => {
                let fault = format!("is not a JSON object on one line: {error}");
                self.rows.end_faulty_row(Some(self.lines), fault);
            }
        }
    }
}

/// Adds the members of an object as cells.
struct Members<'r> {
    rows: &'r mut Rows,
    /// What is wrong with the row, though it is JSON.
    fault: &'r mut Option<String>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(column) = members.next_key_seed(Name(self.rows))? {
            let value: &RawValue = members.next_value()?;
            let fault = match column {
                Ok(column) if self.rows.note_cell(column) => {
                    let name = self.rows.columns().nth(column as usize).unwrap_or_default();
                    Some(format!("has the member {name:?} twice"))
                }
                Ok(column) => push(self.rows, column, value.get()),
                Err(fault) => Some(fault),
            };
            *self.fault = self.fault.take().or(fault);
        }
        Ok(())
    }
}

/// Adds a value. Returns what is wrong with it.
fn push(rows: &mut Rows, column: u32, json: &str) -> Option<String> {
    match json.as_bytes().first() {
        Some(b'n') => {}
        Some(b't') => rows.push_boolean(column, true),
        Some(b'f') => rows.push_boolean(column, false),
        Some(b'{' | b'[') => rows.push_json(column, json),
        Some(b'"') if !json.contains('\\') => rows.push_text(column, &json[1..json.len() - 1]),
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => rows.push_text(column, &text),
            Err(error) => return Some(format!("is not valid JSON: {error}")),
        },
        _ => rows.push_spelled(column, json),
    }
    None
}

/// Reads a name and finds its column.
struct Name<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Result<u32, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Result<u32, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let known = self.0.column(name);
        let column = known.or_else(|| self.0.add_column(name));
        Ok(column.ok_or_else(|| format!("a batch of rows has more than {COLUMNS_MAX} different members")))
    }
}
