//! Rules between the members of a body: each is checked, and described in its schema.

use serde_json::{Value, json};

use super::Object;
use super::json_name;

/// What must hold between members. A member that is null counts as left out.
#[derive(Debug)]
pub enum Rule {
    /// Members that the type does not have are faults: a misspelt one must not be lost silently.
    Closed,
    /// Both or neither.
    Together(&'static str, &'static str),
    /// At least one of them; the first one is what is missed.
    AnyOf(&'static str, &'static str),
    /// Exactly one of two names of the same thing.
    OneOf(&'static str, &'static str),
    /// At most one of two names of the same thing.
    NotBoth(&'static str, &'static str),
    /// The first one goes with the second only.
    Needs(&'static str, &'static str),
    /// The member goes with none of these, for this reason.
    Excludes(&'static str, &'static [&'static str], &'static str),
    /// The member does not go with `false` of another one, for this reason.
    ExcludesFalse(&'static str, &'static str, &'static str),
    /// A rule between values, which JSON Schema cannot say.
    Values(fn(&Object<'_>)),
}

impl Rule {
    /// Notes what is against the rule. `fields`: those of the type.
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
                        fault(
                            missing,
                            format!("is required with {given}: both together, or neither"),
                        );
                    }
                }
            }
            Self::AnyOf(first, other) => {
                if !has(first) && !has(other) {
                    fault(first, format!("is required, or {other} in its place"));
                }
            }
            Self::OneOf(first, other) => {
                Self::AnyOf(first, other).check(object, fields);
                Self::NotBoth(first, other).check(object, fields);
            }
            Self::NotBoth(first, other) => {
                if has(first) && has(other) {
                    fault(other, format!("is another name for {first}; send one of them"));
                }
            }
            Self::Needs(given, missing) => {
                if has(given) && !has(missing) {
                    fault(missing, format!("is required with {given}"));
                }
            }
            Self::Excludes(member, others, why) => {
                if has(member) && others.iter().any(|other| has(other)) {
                    fault(member, why.to_owned());
                }
            }
            Self::ExcludesFalse(member, other, why) => {
                if has(member) && object.given(other) == Some(&Value::Bool(false)) {
                    fault(member, why.to_owned());
                }
            }
            Self::Values(check) => check(object),
        }
    }

    /// The rule as a schema that holds beside the type's own; `None` for one that is said otherwise.
    pub fn schema(&self) -> Option<Value> {
        let given = |names: &[&str]| {
            let members = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({"not": {"type": "null"}})));
            json!({"required": names, "properties": members.collect::<serde_json::Map<_, _>>()})
        };
        let absent = |names: &[&str]| {
            let members = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({"type": "null"})));
            json!({"properties": members.collect::<serde_json::Map<_, _>>()})
        };
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
            Self::Closed | Self::Values(_) => None,
        }
    }
}
