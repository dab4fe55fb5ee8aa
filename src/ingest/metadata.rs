//! Metadata of a point that is made of single values, as the JSON object that a client would have sent.

use super::json::{write_number, write_string};
use crate::timestamp::format_timestamp_ns;

/// Writes metadata: an object, and members behind those that it has.
#[derive(Default)]
pub struct MetadataWriter(Vec<u8>);

/// A value of metadata.
#[derive(Clone, Copy, Debug)]
pub enum MetadataValue<'a> {
    Text(&'a str),
    /// A number in the spelling of JSON.
    Spelled(&'a str),
    Double(f64),
    Integer(i64),
    Boolean(bool),
    /// Nanoseconds since 1970 UTC.
    Time(i64),
}

impl MetadataWriter {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a member.
    pub fn add(&mut self, name: &str, value: MetadataValue<'_>) {
        let out = &mut self.0;
        match out.pop() {
            None => out.push(b'{'),
            Some(_) if has_members(out) => out.push(b','),
            Some(_) => {}
        }
        write_string(name, out);
        out.push(b':');
        match value {
            MetadataValue::Text(text) => write_string(text, out),
            MetadataValue::Spelled(number) => out.extend_from_slice(number.as_bytes()),
            MetadataValue::Double(number) => write_number(number, out),
            MetadataValue::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            MetadataValue::Boolean(true) => out.extend_from_slice(b"true"),
            MetadataValue::Boolean(false) => out.extend_from_slice(b"false"),
            MetadataValue::Time(ns) => write_string(format_timestamp_ns(ns).as_str(), out),
        }
        out.push(b'}');
    }

    /// Puts the members of a JSON object before those that were added, which count for names that both have.
    pub fn add_object(&mut self, object: &str) {
        if self.0.is_empty() {
            self.0.extend_from_slice(object.as_bytes());
            return;
        }
        let added = std::mem::replace(&mut self.0, object.as_bytes().to_vec());
        if let Some(members) = added.strip_prefix(b"{") {
            self.0.pop();
            if has_members(&self.0) && members != b"}" {
                self.0.push(b',');
            }
            self.0.extend_from_slice(members);
        }
    }

    /// The object; empty without members.
    pub fn as_str(&self) -> &str {
        // Everything that was added is UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Whether an object without its last brace has a member.
fn has_members(open: &[u8]) -> bool {
    !open[1..].trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_make_an_object() {
        let mut writer = MetadataWriter::default();
        assert_eq!(writer.as_str(), "");
        writer.add("a\"b", MetadataValue::Text("x}"));
        writer.add("n", MetadataValue::Spelled("1.50"));
        writer.add("d", MetadataValue::Double(2.0));
        writer.add("i", MetadataValue::Integer(i64::MAX));
        writer.add("b", MetadataValue::Boolean(false));
        writer.add("t", MetadataValue::Time(0));
        let expected =
            r#"{"a\"b":"x}","n":1.50,"d":2,"i":9223372036854775807,"b":false,"t":"1970-01-01T00:00:00Z"}"#;
        assert_eq!(writer.as_str(), expected);
        writer.clear();
        writer.add_object(r#"{"a": 1}"#);
        assert_eq!(writer.as_str(), r#"{"a": 1}"#);
    }

    #[test]
    fn an_object_and_members_make_one_object_in_either_order() {
        for (object, expected) in [
            (r#"{"a": 1}"#, r#"{"a": 1,"b":"x"}"#),
            (r#"{"a": 1 }"#, r#"{"a": 1 ,"b":"x"}"#),
            ("{}", r#"{"b":"x"}"#),
            ("{ }", r#"{ "b":"x"}"#),
        ] {
            for object_first in [true, false] {
                let mut writer = MetadataWriter::default();
                if object_first {
                    writer.add_object(object);
                }
                writer.add("b", MetadataValue::Text("x"));
                if !object_first {
                    writer.add_object(object);
                }
                assert_eq!(writer.as_str(), expected);
            }
        }
    }
}
