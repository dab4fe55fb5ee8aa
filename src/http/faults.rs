//! Gathering all faults of a request before it is refused, each at its place.

use serde_json::{Map, Value};

use crate::error::{Detail, ServiceError};

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults {
    details: Vec<Detail>,
}

impl Faults {
    /// Notes a fault.
    pub fn add<S: AsRef<str>>(&mut self, path: &[S], message: impl Into<String>) {
        let path = path.iter().map(|member| member.as_ref().to_owned()).collect();
        self.details.push(Detail {
            path,
            message: message.into(),
        });
    }

    /// Whether the request is in order so far.
    pub fn none(&self) -> bool {
        self.details.is_empty()
    }

    /// The refusal.
    pub fn into_error(self) -> ServiceError {
        ServiceError::faults(self.details)
    }

    /// 400 with all faults, if there are any.
    ///
    /// # Errors
    /// 400.
    pub fn check(self) -> Result<(), ServiceError> {
        if self.none() {
            Ok(())
        } else {
            Err(self.into_error())
        }
    }
}

/// The members of a JSON object, and where in the body it stands. An object that is none has no
/// members, and is a fault already.
pub struct Members<'a> {
    map: Option<&'a Map<String, Value>>,
    path: Vec<String>,
}

impl<'a> Members<'a> {
    /// The members of the body itself.
    pub fn of_body(body: &'a Value, faults: &mut Faults) -> Self {
        Self::at(body, Vec::new(), faults)
    }

    /// The members of the object at `path`.
    pub fn at(value: &'a Value, path: Vec<String>, faults: &mut Faults) -> Self {
        let map = value.as_object();
        if map.is_none() {
            faults.add(&path, format!("must be an object, not {}", kind_of(value)));
        }
        Self { map, path }
    }

    /// Name and value of each member, in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.map.into_iter().flatten()
    }

    /// A member as sent, null included.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.map?.get(name)
    }

    /// A member that is there and says something: null in an optional member says nothing.
    pub fn given(&self, name: &str) -> Option<&'a Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The path of a member.
    pub fn path_of(&self, name: &str) -> Vec<String> {
        self.path.iter().cloned().chain([name.to_owned()]).collect()
    }

    /// A member that must be there.
    pub fn required<T>(
        &self,
        name: &str,
        faults: &mut Faults,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        // Members of what is no object are not missing: that it is none has been said.
        self.map?;
        match self.get(name) {
            None => {
                faults.add(&self.path_of(name), "is required");
                None
            }
            Some(value) => self.read(name, value, faults, read),
        }
    }

    /// A member that may be left out; null says the same.
    pub fn optional<T>(
        &self,
        name: &str,
        faults: &mut Faults,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        self.given(name)
            .and_then(|value| self.read(name, value, faults, read))
    }

    /// A member that may be left out (`None`) or taken back with null (`Some(None)`).
    pub fn nullable<T>(
        &self,
        name: &str,
        faults: &mut Faults,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<Option<T>> {
        match self.get(name)? {
            Value::Null => Some(None),
            value => self.read(name, value, faults, read).map(Some),
        }
    }

    fn read<T>(
        &self,
        name: &str,
        value: &'a Value,
        faults: &mut Faults,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        read(value)
            .map_err(|message| faults.add(&self.path_of(name), message))
            .ok()
    }
}

/// The JSON type of a value, with its article.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values;
    use super::*;

    fn paths(faults: Faults) -> Vec<(String, String)> {
        let error = faults.into_error();
        error
            .details
            .into_iter()
            .map(|detail| (detail.path.join("/"), detail.message))
            .collect()
    }

    #[test]
    fn all_faults_are_reported_together_at_their_places() {
        let body = json!({"name": "  ", "retentionDays": 1.5, "schema": {"a": 3, "b": {"type": "float"}}});
        let mut faults = Faults::default();
        let members = Members::of_body(&body, &mut faults);
        assert_eq!(
            members.required("name", &mut faults, |v| values::name(v, 100)),
            None
        );
        assert_eq!(
            members.required("type", &mut faults, |v| values::name(v, 100)),
            None
        );
        assert_eq!(
            members.optional("retentionDays", &mut faults, |v| values::integer(v, 1, 30)),
            None
        );
        assert_eq!(members.optional("absent", &mut faults, values::boolean), None);
        let schema = Members::at(&body["schema"], members.path_of("schema"), &mut faults);
        for (name, value) in schema.iter() {
            let field = Members::at(value, schema.path_of(name), &mut faults);
            field.required("type", &mut faults, |v| values::one_of(v, &[("number", 1)]));
        }
        let found = paths(faults);
        let places: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            places,
            ["name", "type", "retentionDays", "schema/a", "schema/b/type"]
        );
        assert_eq!(found[3].1, "must be an object, not a number");
        assert_eq!(found[4].1, "must be number, not \"float\"");
    }

    #[test]
    fn a_body_of_the_wrong_type_is_one_fault_at_the_empty_path() {
        for body in [json!([]), json!("text"), json!(null), json!(7)] {
            let mut faults = Faults::default();
            let members = Members::of_body(&body, &mut faults);
            members.required("name", &mut faults, |v| values::name(v, 100));
            assert_eq!(faults.details.len(), 1);
            assert!(faults.details[0].path.is_empty());
        }
    }

    #[test]
    fn null_takes_back_what_may_be_taken_back_and_else_says_nothing() {
        let body = json!({"description": null, "name": null, "type": null});
        let mut faults = Faults::default();
        let members = Members::of_body(&body, &mut faults);
        assert_eq!(
            members.nullable("description", &mut faults, |v| values::text(v, 10)),
            Some(None)
        );
        assert_eq!(
            members.nullable("unit", &mut faults, |v| values::text(v, 10)),
            None
        );
        assert_eq!(
            members.optional("type", &mut faults, |v| values::name(v, 10)),
            None
        );
        assert!(faults.none());
        assert_eq!(
            members.required("name", &mut faults, |v| values::name(v, 10)),
            None
        );
        assert_eq!(
            paths(faults),
            [(String::from("name"), String::from("must be a string, not null"))]
        );
    }
}
