//! Constraints between the members of a body. Each is checked, and described in the schema.

use serde_json::{Map, Value, json};

use super::{Object, json_name};

/// A constraint between members. A member that is null counts as absent.
#[derive(Debug)]
pub enum Rule {
    /// Unknown members are faults: a misspelt member must not be ignored silently.
    Closed,
    /// Both or neither.
    Together(&'static str, &'static str),
    /// At least one of them; the error names the first.
    AnyOf(&'static str, &'static str),
    /// Exactly one of two names of the same thing.
    OneOf(&'static str, &'static str),
    /// At most one of two names of the same thing.
    NotBoth(&'static str, &'static str),
    /// The first one requires the second.
    Needs(&'static str, &'static str),
    /// The member stands only beside all of these, for this reason.
    Beside(&'static str, &'static [&'static str], &'static str),
    /// The member excludes each of these, for this reason.
    Excludes(&'static str, &'static [&'static str], &'static str),
    /// The member excludes `false` for another one, for this reason.
    ExcludesFalse(&'static str, &'static str, &'static str),
    /// A constraint between values, and the same as a schema.
    Described(fn(&Object<'_>), fn() -> Value),
    /// A constraint between values that JSON Schema cannot express.
    Values(fn(&Object<'_>)),
}

impl Rule {
    /// Records violations of the rule. `fields`: those of the type.
    pub fn check(&self, object: &Object<'_>, fields: &[&str]) {
        let has = |name: &str| object.given(name).is_some();
        let fault = |name: &str, message: String| object.place.member(name).fault(message);
        match *self {
            Self::Closed => {
                let known: Vec<_> = fields.iter().map(|field| json_name(field)).collect();
                for name in object.members.keys().filter(|name| !known.contains(name)) {
                    fault(name, format!("is not known here; known are {}", known.join(", ")));
                }
            }
            Self::Together(one, other) => {
                for (given, missing) in [(one, other), (other, one)] {
                    if has(given) && !has(missing) {
                        let message = format!("is required with {given}: both together, or neither");
                        fault(missing, message);
                    }
                }
            }
            Self::OneOf(first, other) => {
                Self::AnyOf(first, other).check(object, fields);
                Self::NotBoth(first, other).check(object, fields);
            }
            Self::AnyOf(first, other) if !has(first) && !has(other) => {
                fault(first, format!("is required, or {other} in its place"));
            }
            Self::NotBoth(first, other) if has(first) && has(other) => {
                fault(other, format!("is another name for {first}; send one of them"));
            }
            Self::Needs(given, missing) if has(given) && !has(missing) => {
                fault(missing, format!("is required with {given}"));
            }
            Self::Beside(member, others, why) if has(member) && !others.iter().all(|other| has(other)) => {
                fault(member, why.to_owned());
            }
            Self::Excludes(member, others, why) if has(member) && others.iter().any(|other| has(other)) => {
                fault(member, why.to_owned());
            }
            Self::ExcludesFalse(member, other, why)
                if has(member) && object.given(other) == Some(&Value::Bool(false)) =>
            {
                fault(member, why.to_owned());
            }
            Self::Values(check) | Self::Described(check, _) => check(object),
            // Kept.
            Self::AnyOf(..)
            | Self::NotBoth(..)
            | Self::Needs(..)
            | Self::Beside(..)
            | Self::Excludes(..)
            | Self::ExcludesFalse(..) => {}
        }
    }

    /// Returns the rule as a schema in addition to the type's own; `None` for a rule that is expressed in another way.
    pub fn schema(&self) -> Option<Value> {
        let members = |names: &[&str], schema: Value| -> Map<String, Value> {
            let members = names.iter().map(|name| ((*name).to_owned(), schema.clone()));
            members.collect()
        };
        let given = |names: &[&str]| json!({"required": names, "properties": members(names, json!({"not": {"type": "null"}}))});
        let absent = |names: &[&str]| json!({"properties": members(names, json!({"type": "null"}))});
        let any = |choices: Vec<Value>| Some(json!({"anyOf": choices}));
        match *self {
            Self::Together(one, other) => any(vec![given(&[one, other]), absent(&[one, other])]),
            Self::AnyOf(first, other) => any(vec![given(&[first]), given(&[other])]),
            Self::OneOf(first, other) => {
                let only = |one, other| json!({"allOf": [given(&[one]), absent(&[other])]});
                any(vec![only(first, other), only(other, first)])
            }
            Self::NotBoth(first, other) => any(vec![absent(&[first]), absent(&[other])]),
            Self::Needs(member, needed) => any(vec![absent(&[member]), given(&[needed])]),
            Self::Excludes(member, others, _) => any(vec![absent(&[member]), absent(others)]),
            Self::ExcludesFalse(member, other, _) => any(vec![
                absent(&[member]),
                json!({"properties": {other: {"not": {"const": false}}}}),
            ]),
            Self::Beside(member, others, _) => any(vec![absent(&[member]), given(others)]),
            Self::Described(_, schema) => Some(schema()),
            Self::Closed | Self::Values(_) => None,
        }
    }
}
