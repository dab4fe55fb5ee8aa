//! The metadata filter: all given members must be present and equal. Metadata is parsed from its original text, so that
//! numbers beyond the range of doubles do not affect other members.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::ingest::json::{DEPTH_MAX, Kind, Malformed, Scanner};
use crate::limits::METADATA_FILTER_MEMBERS_MAX;

/// A prepared filter. A text is parsed once, however many members are wanted.
#[derive(Clone, Debug)]
pub struct MetadataFilter {
    members: usize,
    root: Node,
}

/// A bit set: each wanted member has one bit for its name as a whole, and one for its name split at the dots.
type Places = u128;

const _: () = assert!(2 * METADATA_FILTER_MEMBERS_MAX <= Places::BITS as usize);

/// What is wanted at a path of member names and below it.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The bit of this path, and the wanted value.
    wanted: Option<(Places, Value)>,
    below: HashMap<String, Node>,
    /// The bits of this path and of all paths below it.
    places: Places,
}

impl MetadataFilter {
    /// `None` if `members` is empty. At most [`METADATA_FILTER_MEMBERS_MAX`] members.
    pub fn new(members: &Map<String, Value>) -> Option<Self> {
        let mut root = Node::default();
        for (index, (name, value)) in members.iter().enumerate() {
            let place = 1 << (2 * index);
            root.want(std::iter::once(name.as_str()), place, value);
            // No metadata is nested deeper, so a longer path never matches.
            if (2..=DEPTH_MAX as usize).contains(&name.split('.').count()) {
                root.want(name.split('.'), place << 1, value);
            }
        }
        (!members.is_empty()).then_some(MetadataFilter {
            members: members.len(),
            root,
        })
    }

    /// Whether a point with this metadata matches.
    pub fn passes(&self, metadata: Option<&str>) -> bool {
        let read = |text: &str| {
            let (mut scan, mut found) = (Scanner::new(text.as_bytes())?, 0);
            self.root.read(&mut scan, &mut found)?;
            Ok::<_, Malformed>(found)
        };
        let Some(Ok(found)) = metadata.map(read) else {
            return false;
        };
        (0..self.members).all(|index| found >> (2 * index) & 0b11 != 0)
    }
}

impl Node {
    fn want<'a>(&mut self, path: impl Iterator<Item = &'a str>, place: Places, value: &Value) {
        let mut node = self;
        node.places |= place;
        for name in path {
            node = node.below.entry(name.to_owned()).or_default();
            node.places |= place;
        }
        node.wanted = Some((place, value.clone()));
    }

    /// Skips the next value and sets in `found` the bits of this node that match. Of duplicate members the last one
    /// counts, with everything in it. The recursion is as deep as the node's paths.
    fn read(&self, scan: &mut Scanner<'_>, found: &mut Places) -> Result<(), Malformed> {
        *found &= !self.places;
        let kind = scan.kind()?;
        let start = scan.at();
        if kind == Kind::Object && !self.below.is_empty() {
            let mut buffer = String::new();
            let mut more = scan.open(b'}')?;
            while more {
                match self.below.get(scan.name()?.get(&mut buffer)) {
                    Some(node) => node.read(scan, found)?,
                    None => scan.skip_value(0)?,
                }
                more = scan.more(b'}')?;
            }
        } else {
            scan.skip_value(0)?;
        }
        if let Some((place, wanted)) = &self.wanted
            && equals(scan.slice(start, scan.at()), kind, wanted)
        {
            *found |= place;
        }
        Ok(())
    }
}

/// Equality of JSON values: numbers by value, objects in any order of members.
fn equals(text: &str, kind: Kind, wanted: &Value) -> bool {
    match wanted {
        // A number beyond the range of doubles cannot be requested either.
        Value::Number(number) => kind == Kind::Number && equal_numbers(text, &number.to_string()),
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

/// Compares integers exactly, whatever their size, and other numbers as doubles.
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
            (r#"{"a.b":1,"a.c":2}"#, r#"{"a":{"b":1,"c":2}}"#, true),
            (r#"{"a.b":1,"a":{"b":1}}"#, r#"{"a":{"b":1}}"#, true),
            (r#"{"a.b":1,"a.c":2}"#, r#"{"a":{"b":1},"a":{"c":2}}"#, false),
            (r#"{"a.b":1}"#, r#"{"a":{"b":1},"a":3}"#, false),
            (r#"{"a.b":1}"#, r#"{"a.b":1,"a":{"b":2}}"#, true),
            (r#"{"a.b":1}"#, r#"{"a":{"b":{"b":1}}}"#, false),
            (r#"{"a..b":1}"#, r#"{"a":{"":{"b":1}}}"#, true),
            (r#"{"a":{}}"#, r#"{ "a" : { } }"#, true),
        ] {
            assert_eq!(passes(filter, metadata), expected, "{filter} on {metadata}");
        }
    }

    #[test]
    fn the_maximum_number_of_members_is_distinguished() {
        let members = |changed: Option<usize>| {
            let value = |n: usize| if changed == Some(n) { -1 } else { n as i64 };
            let all = (0..METADATA_FILTER_MEMBERS_MAX).map(|n| format!(r#""k{n}":{{"x":{}}}"#, value(n)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(","))
        };
        let wanted = (0..METADATA_FILTER_MEMBERS_MAX).map(|n| format!(r#""k{n}.x":{n}"#));
        let filter = format!("{{{}}}", wanted.collect::<Vec<_>>().join(","));
        assert!(passes(&filter, &members(None)));
        for changed in 0..METADATA_FILTER_MEMBERS_MAX {
            assert!(!passes(&filter, &members(Some(changed))), "member {changed}");
        }
    }

    #[test]
    fn a_very_deep_path_is_matched_cheaply() {
        let name = vec!["a"; 400_000].join(".");
        let filter = |value: &Value| Map::from_iter([(name.clone(), value.clone())]);
        let filter = MetadataFilter::new(&filter(&Value::Bool(true))).unwrap();
        assert!(filter.passes(Some(&format!(r#"{{"{name}":true}}"#))));
        assert!(!filter.passes(Some(r#"{"a":{"a":true}}"#)));
    }

    #[test]
    fn a_point_without_metadata_matches_no_filter() {
        let members = Map::from_iter([("a".to_owned(), Value::Null)]);
        assert!(!MetadataFilter::new(&members).unwrap().passes(None));
        assert!(MetadataFilter::new(&Map::new()).is_none());
    }
}
