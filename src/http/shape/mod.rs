//! Request bodies as types. A type defines what it accepts; both its parser and its description come from that.
//!
//! [`FromJson`] parses a value and reports all of its faults, each with its place, where `serde` would stop at the
//! first (contract 1). [`body!`] makes a struct whose members are parsed by their types; [`Rule`]s are the constraints
//! between members. The same types make the schemas of `/api/docs`.

mod list;
mod number;
mod rule;
mod schema;
mod text;
mod words;

use std::cell::RefCell;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::error::{Detail, ServiceError};
use crate::limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, OPEN_NAME_CHARS_MAX};

pub use list::{Given, List, Patch};
pub use number::{Finite, Integer, Number};
pub use rule::Rule;
pub use schema::Fields;
pub use text::{Email, Moment, NewPassword, Note, Secret, Text, Trimmed, Url, UrlOrMailto, email};
pub use words::*;

/// The name of a bucket or a key.
pub type Name = Trimmed<NAME_CHARS_MAX>;
/// A name whose length the specification leaves open.
pub type OpenName = Trimmed<OPEN_NAME_CHARS_MAX>;
pub type Description = Text<DESCRIPTION_CHARS_MAX>;

/// A type that is parsed from JSON of a request.
pub trait FromJson: Sized {
    /// Parses a value. If it is invalid, records the faults at their places and returns `None`.
    fn read(value: &Value, place: &Place<'_>) -> Option<Self>;

    /// The value of a member of this type that is absent.
    fn absent(place: &Place<'_>) -> Option<Self> {
        place.fault("is required");
        None
    }

    /// Adds the rules between members of this type and of nested types, by the names of their schemas.
    fn rules(_all: &mut Vec<(String, &'static [Rule])>) {}
}

/// An optional member; null is the same as absent.
impl<T: FromJson> FromJson for Option<T> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value, place).map(Some),
        }
    }

    fn absent(_: &Place<'_>) -> Option<Self> {
        Some(None)
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        T::rules(all);
    }
}

/// Collects the faults of a request.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Vec<Detail>>);

impl Faults {
    /// Returns the request itself as the place where parsing begins.
    pub fn root(&self) -> Place<'_> {
        Place {
            faults: self,
            step: None,
        }
    }

    /// Returns 400 with all faults, if there are any.
    pub fn check(self) -> Result<(), ServiceError> {
        match self.0.into_inner() {
            details if details.is_empty() => Ok(()),
            details => Err(ServiceError::faults(details)),
        }
    }

    /// All faults.
    pub fn into_details(self) -> Vec<Detail> {
        self.0.into_inner()
    }

    /// What was read of the request, unless there are faults.
    ///
    /// # Errors
    /// 400 with all faults.
    pub fn finish<T>(self, read: Option<T>) -> Result<T, ServiceError> {
        self.check()?;
        read.ok_or_else(|| ServiceError::internal("BUG: a part of the request was not read, without a fault"))
    }
}

/// The location of a value in a request.
pub struct Place<'a> {
    faults: &'a Faults,
    step: Option<(&'a Place<'a>, Step<'a>)>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub fn member(&'a self, name: &'a str) -> Place<'a> {
        self.at(Step::Member(name))
    }

    pub fn index(&'a self, index: usize) -> Place<'a> {
        self.at(Step::Index(index))
    }

    fn at(&'a self, step: Step<'a>) -> Place<'a> {
        Place {
            faults: self.faults,
            step: Some((self, step)),
        }
    }

    /// Records a fault of this place. The message continues the place's name.
    pub fn fault(&self, message: impl Into<String>) {
        let detail = Detail {
            path: self.path(),
            message: message.into(),
        };
        self.faults.0.borrow_mut().push(detail);
    }

    /// Records faults of a part of the request that was read by itself: their paths go on from this place.
    pub fn adopt(&self, details: impl IntoIterator<Item = Detail>) {
        let path = self.path();
        let details = details.into_iter().map(|detail| Detail {
            path: [path.clone(), detail.path].concat(),
            ..detail
        });
        self.faults.0.borrow_mut().extend(details);
    }

    /// Returns the value, or records the error as a fault and returns `None`.
    pub fn check<T>(&self, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|message| self.fault(message.to_string())).ok()
    }

    /// Returns what the value was read as. If it is of another type, adds a fault that says what it must be.
    fn typed<T>(&self, read: Option<T>, wanted: &str, value: &Value) -> Option<T> {
        self.check(read.ok_or_else(|| format!("must be {wanted}, not {}", kind_of(value))))
    }

    /// Parses the text of a string. Any other value is a fault.
    pub fn parse<T, E: Display>(&self, value: &Value, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.check(parse(self.typed(value.as_str(), "a string", value)?))
    }

    /// Returns the members of an object. Any other value is a fault.
    pub fn object(&'a self, value: &'a Value) -> Option<Object<'a>> {
        let members = self.typed(value.as_object(), "an object", value)?;
        Some(Object { members, place: self })
    }

    fn path(&self) -> Vec<String> {
        let Some((outer, step)) = self.step else {
            return Vec::new();
        };
        let mut path = outer.path();
        path.push(match step {
            Step::Member(name) => name.to_owned(),
            Step::Index(index) => index.to_string(),
        });
        path
    }
}

/// An object and its place.
pub struct Object<'a> {
    /// In the order sent.
    pub members: &'a Map<String, Value>,
    pub place: &'a Place<'a>,
}

impl Object<'_> {
    /// Parses a member.
    pub fn member<T: FromJson>(&self, name: &str) -> Option<T> {
        let place = self.place.member(name);
        match self.members.get(name) {
            Some(value) => T::read(value, &place),
            None => T::absent(&place),
        }
    }

    /// Returns a member that is present and not null.
    pub fn given(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }
}

/// An object with any members, which are checked elsewhere.
#[derive(Debug)]
pub struct AnyObject;

impl FromJson for AnyObject {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.object(value).map(|_| Self)
    }
}

/// Returns the JSON type of a value, with its article.
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

/// Converts a member's name to JSON: `bucket_id` is `bucketId`, `r#type` is `type`.
pub fn json_name(field: &str) -> String {
    let mut words = field.trim_start_matches("r#").split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_ascii_uppercase() + rest
    })
}

/// Gives a type its schema in `/api/docs`, and the schema's name.
macro_rules! described {
    ($kind:ty $(where [$(const $bound:ident: $of:ty),+])?, $name:expr, $schema:expr) => {
        impl$(<$(const $bound: $of),+>)? utoipa::PartialSchema for $kind {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        impl$(<$(const $bound: $of),+>)? utoipa::ToSchema for $kind {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
        }
    };
}
pub(crate) use described;

/// Defines the struct of a body: read member by member, described with its comments.
///
/// ```text
/// body! {
///     /// Body of a creation.
///     pub struct KeyBody {
///         /// Shown name.
///         name: Option<Name>,
///         /// The same by another name.
///         label: Option<Name>,
///     }
///     rules [Rule::AnyOf("name", "label")]
/// }
/// ```
macro_rules! body {
    (
        $(#[$about:meta])*
        pub struct $name:ident { $($(#[$member_about:meta])* $member:ident: $kind:ty,)* }
        $(rules [$($rule:expr),* $(,)?])?
    ) => {
        #[derive(Debug, utoipa::ToSchema)]
        $(#[$about])*
        #[schema(rename_all = "camelCase")]
        pub struct $name { $($(#[$member_about])* pub $member: $kind,)* }

        impl $name {
            const RULES: &'static [$crate::http::shape::Rule] = &[$($($rule),*)?];
        }

        impl $crate::http::shape::FromJson for $name {
            fn read(value: &serde_json::Value, place: &$crate::http::shape::Place<'_>) -> Option<Self> {
                use $crate::http::shape::json_name;
                let object = place.object(value)?;
                for rule in Self::RULES {
                    rule.check(&object, &[$(stringify!($member)),*]);
                }
                // Parse all members before returning, so that all faults are found.
                $(let $member = object.member(&json_name(stringify!($member)));)*
                Some(Self { $($member: $member?,)* })
            }

            fn rules(all: &mut Vec<(String, &'static [$crate::http::shape::Rule])>) {
                all.push((<Self as utoipa::ToSchema>::name().into_owned(), Self::RULES));
                $(<$kind as $crate::http::shape::FromJson>::rules(all);)*
            }
        }
    };
}
pub(crate) use body;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    body! {
        /// A part.
        pub struct Part {
            /// How many.
            count: Count,
        }
        rules [Rule::Closed]
    }

    type Parts = List<Part, 1, 3>;
    type Short = Text<10>;
    type Title = Trimmed<100>;
    type Count = Integer<1, 30>;

    body! {
        /// A whole.
        pub struct Whole {
            /// Its name.
            name: Title,
            /// May be taken back.
            #[schema(value_type = Option<Short>)]
            description: Patch<Short>,
            /// May be left out.
            is_open: Option<bool>,
            /// Its parts.
            parts: Option<Parts>,
        }
        rules [Rule::Together("isOpen", "parts")]
    }

    fn read(body: &Value) -> Result<Whole, Vec<(String, String)>> {
        let faults = Faults::default();
        let read = Whole::read(body, &faults.root());
        match faults.check() {
            Ok(()) => Ok(read.unwrap()),
            Err(error) => Err(error
                .details
                .into_iter()
                .map(|detail| (detail.path.join("/"), detail.message))
                .collect()),
        }
    }

    #[test]
    fn all_faults_are_reported_together_at_their_places() {
        let found = read(&json!({
            "name": "  ", "description": 5, "parts": [{"count": 1}, {"count": 1.5, "odd": 1}, 3]
        }))
        .unwrap_err();
        let places: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            places,
            [
                "isOpen",
                "name",
                "description",
                "parts/1/odd",
                "parts/1/count",
                "parts/2"
            ]
        );
        assert_eq!(found[1].1, "must not be blank");
        assert_eq!(found[2].1, "must be a string, not a number");
        assert_eq!(found[5].1, "must be an object, not a number");
    }

    #[test]
    fn a_body_of_the_wrong_type_is_one_fault_at_the_empty_path() {
        for body in [json!([]), json!("text"), json!(null), json!(7)] {
            let found = read(&body).unwrap_err();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].0, "");
        }
    }

    #[test]
    fn null_clears_a_clearable_member_and_is_ignored_elsewhere() {
        let whole = read(&json!({"name": "a", "description": null, "isOpen": null})).unwrap();
        assert!(matches!(whole.description, Patch(Some(None))));
        assert_eq!(whole.is_open, None);
        let whole = read(&json!({"name": "a"})).unwrap();
        assert!(matches!(whole.description, Patch(None)));
        let whole = read(&json!({"name": " a ", "isOpen": true, "parts": [{"count": 2}]})).unwrap();
        assert_eq!((&*whole.name.0, whole.parts.unwrap().0[0].count.0), ("a", 2));
        let found = read(&json!({"name": null})).unwrap_err();
        assert_eq!(
            found,
            [("name".to_owned(), "must be a string, not null".to_owned())]
        );
    }

    #[test]
    fn member_names_are_those_of_the_api() {
        for (field, name) in [
            ("name", "name"),
            ("r#type", "type"),
            ("data_source_ids", "dataSourceIds"),
        ] {
            assert_eq!(json_name(field), name);
        }
    }
}
