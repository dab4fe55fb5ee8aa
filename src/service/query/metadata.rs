//! The metadata filter: all given members must be there and equal. Metadata is read as the text it was sent as, so
//! that numbers no double can hold are no obstacle to the members beside them.

use serde_json::{Map, Value};

use crate::ingest::json::{Kind, Malformed, Scanner};

/// A filter, ready to be asked about texts.
#[derive(Clone, Debug)]
pub struct MetadataFilter(Vec<Wanted>);

#[derive(Clone, Debug)]
struct Wanted {
    /// The member's name as a whole, and cut at its dots.
    name: String,
    path: Vec<String>,
    value: Value,
}

impl MetadataFilter {
    /// `None` when there is nothing to ask for.
    pub fn new(members: &Map<String, Value>) -> Option<Self> {
        let wanted = members.iter().map(|(name, value)| Wanted {
            name: name.clone(),
            path: name.split('.').map(str::to_owned).collect(),
            value: value.clone(),
        });
        (!members.is_empty()).then(|| MetadataFilter(wanted.collect()))
    }

    /// Whether a point with this metadata counts.
    pub fn passes(&self, metadata: Option<&str>) -> bool {
        let Some(text) = metadata else { return false };
        self.0.iter().all(|wanted| {
            let whole = std::slice::from_ref(&wanted.name);
            let is = |path: &[String]| member(text, path).is_some_and(|found| equals(found, &wanted.value));
            is(whole) || wanted.path.len() > 1 && is(&wanted.path)
        })
    }
}

/// The text of the value at a path of member names; of members with one name, the last.
fn member<'a>(text: &'a str, path: &[String]) -> Option<&'a str> {
    let Some((name, rest)) = path.split_first() else {
        return Some(text);
    };
    let found = member_of(text, name).ok()??;
    member(found, rest)
}

fn member_of<'a>(text: &'a str, wanted: &str) -> Result<Option<&'a str>, Malformed> {
    let mut scan = Scanner::new(text.as_bytes())?;
    let mut found = None;
    if scan.kind()? != Kind::Object {
        return Ok(None);
    }
    let mut buffer = String::new();
    let mut more = scan.open(b'}')?;
    while more {
        let is_wanted = scan.name()?.get(&mut buffer) == wanted;
        scan.peek();
        let start = scan.at();
        scan.skip_value(0)?;
        if is_wanted {
            found = Some(&text[start..scan.at()]);
        }
        more = scan.more(b'}')?;
    }
    Ok(found)
}

/// Equal as JSON: numbers by value, objects whatever the order of their members.
fn equals(text: &str, wanted: &Value) -> bool {
    match wanted {
        // What no double can hold cannot be asked for either.
        Value::Number(number) => equal_numbers(text.trim(), &number.to_string()),
        _ => serde_json::from_str::<Value>(text).is_ok_and(|found| equal_values(&found, wanted)),
    }
}

fn equal_values(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Number(a), Value::Number(b)) => equal_numbers(&a.to_string(), &b.to_string()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_values(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal_values(a, b)))
        }
        _ => found == wanted,
    }
}

/// Integers to their last digit, whatever their size; anything else as doubles.
fn equal_numbers(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b && a.is_finite(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(filter: &str, metadata: &str) -> bool {
        let Value::Object(members) = serde_json::from_str(filter).unwrap() else {
            panic!("an object")
        };
        MetadataFilter::new(&members).unwrap().passes(Some(metadata))
    }

    #[test]
    fn values_compare_as_json() {
        for (filter, metadata, expected) in [
            (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
            (r#"{"a":1}"#, r#"{"a":1e0,"b":2}"#, true),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, false),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#, false),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740993}"#, true),
            (r#"{"a":"x","b":null}"#, r#"{"a":"x","b":null}"#, true),
            (r#"{"a":"x","b":null}"#, r#"{"a":"x"}"#, false),
            (r#"{"a":{"x":1,"y":[1,2]}}"#, r#"{"a":{"y":[1.0,2],"x":1}}"#, true),
            (r#"{"a":{"x":1}}"#, r#"{"a":{"x":1,"y":2}}"#, false),
            (r#"{"a.b":true}"#, r#"{"a":{"b":true}}"#, true),
            (r#"{"a.b":true}"#, r#"{"a.b":true}"#, true),
            (r#"{"a.b.c":"d"}"#, r#"{"a":{"b":{"c":"d"}}}"#, true),
            (r#"{"a.b":true}"#, r#"{"a":true}"#, false),
            (r#"{"a":"u"}"#, r#"{"a":"\u0075"}"#, true),
            (r#"{"u":1}"#, r#"{"\u0075":1}"#, true),
            (r#"{"a":2}"#, r#"{"a":1,"a":2}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"a":2}"#, false),
            (r#"{"a":"x"}"#, r#"{"huge":1e999,"a":"x"}"#, true),
        ] {
            assert_eq!(passes(filter, metadata), expected, "{filter} on {metadata}");
        }
    }

    #[test]
    fn a_point_without_metadata_matches_no_filter() {
        let members = Map::from_iter([("a".to_owned(), Value::Null)]);
        assert!(!MetadataFilter::new(&members).unwrap().passes(None));
        assert!(MetadataFilter::new(&Map::new()).is_none());
    }
}
