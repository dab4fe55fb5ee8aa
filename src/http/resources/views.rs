//! Answers that the resources have in common: one object, a page of a list, an object's ID and name.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::endpoint::{Answer, Pagination, Reply};
use crate::ids::ObjectId;
use crate::service::page::{Page, PageRequest};

/// A list, unless it is empty.
pub fn given<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// An object as the API shows it, and the members of answers that hold it.
pub trait Resource: Serialize + ToSchema {
    /// The member that holds one object, such as `dataSource`.
    const ONE: &'static str;
    /// The member that holds the objects of a list, such as `dataSources`.
    const MANY: &'static str;
    /// The order of lists.
    const ORDER: &'static str = "Oldest first.";
}

/// `{message?, <object>}`
pub struct One<T> {
    message: Option<&'static str>,
    object: T,
}

/// `{<objects>, pagination}`
pub struct Many<T> {
    objects: Vec<T>,
    pagination: Pagination,
}

impl<T: Resource> Answer<One<T>> {
    pub fn one(object: T) -> Reply<One<T>> {
        Self::of(&One {
            message: None,
            object,
        })
    }

    /// The answer to a change; the message says what has been done.
    pub fn changed(message: &'static str, object: T) -> Reply<One<T>> {
        let message = Some(message);
        Self::of(&One { message, object })
    }
}

impl<T: Resource> Answer<Many<T>> {
    pub fn page<'a, E>(request: PageRequest, page: &'a Page<E>, view: impl Fn(&'a E) -> T) -> Reply<Many<T>> {
        Self::of(&Many {
            objects: page.entries.iter().map(view).collect(),
            pagination: Pagination::of(request, page),
        })
    }
}

impl<T: Resource> Serialize for One<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        if let Some(message) = self.message {
            members.serialize_entry("message", message)?;
        }
        members.serialize_entry(T::ONE, &self.object)?;
        members.end()
    }
}

impl<T: Resource> Serialize for Many<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(2))?;
        members.serialize_entry(T::MANY, &self.objects)?;
        members.serialize_entry("pagination", &self.pagination)?;
        members.end()
    }
}

impl<T: Resource> PartialSchema for One<T> {
    fn schema() -> RefOr<Schema> {
        let message = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Result in words, for changes."));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("The response about one object."))
            .property("message", message)
            .property(T::ONE, reference::<T>("The object as it is now."))
            .required(T::ONE)
            .into()
    }
}

impl<T: Resource> PartialSchema for Many<T> {
    fn schema() -> RefOr<Schema> {
        let objects = ArrayBuilder::new()
            .items(Ref::from_schema_name(T::name()))
            .description(Some(T::ORDER));
        let pagination = reference::<Pagination>("Position of this page in the list.");
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("A page of a list."))
            .property(T::MANY, objects)
            .property("pagination", pagination)
            .required(T::MANY)
            .required("pagination")
            .into()
    }
}

impl<T: Resource> ToSchema for One<T> {
    fn name() -> Cow<'static, str> {
        answer_name(T::ONE)
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((T::name().into_owned(), T::schema()));
        T::schemas(all);
    }
}

impl<T: Resource> ToSchema for Many<T> {
    fn name() -> Cow<'static, str> {
        answer_name(T::MANY)
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        One::<T>::schemas(all);
        all.push((Pagination::name().into_owned(), Pagination::schema()));
        Pagination::schemas(all);
    }
}

fn reference<T: ToSchema>(description: &str) -> Ref {
    let mut reference = Ref::from_schema_name(T::name());
    description.clone_into(&mut reference.description);
    reference
}

/// The name of an answer's schema: `DataSourceAnswer` for the member `dataSource`.
fn answer_name(member: &str) -> Cow<'static, str> {
    let (initial, rest) = member.split_at(1);
    format!("{}{rest}Answer", initial.to_ascii_uppercase()).into()
}

/// Defines how an object is shown: the description, the type and the value of each member, and the function `of` that
/// shows it. `member?: T` is an `Option<T>` that is left out when it is `None`.
///
/// ```text
/// view! {
///     /// A note.
///     pub struct NoteView<'a> of(note: &'a Note; author = &note.author) {
///         /// Text of the note.
///         text: &'a str = &note.text,
///         /// Title, if it has one.
///         title?: &'a str = note.title.as_deref(),
///         /// Who wrote it.
///         written_by: NamedView<'a> = NamedView::of(author.id, &author.name),
///     }
/// }
/// ```
macro_rules! view {
    (
        $(#[$about:meta])*
        pub struct $name:ident $(<$life:lifetime>)?
        of($($from:ident: $source:ty),* $(; $($known:ident = $derived:expr),+)?) {
            $($(#[$member_about:meta])* $member:ident $(?: $optional:ty)? $(: $kind:ty)? = $value:expr,)+
        }
    ) => {
        #[derive(serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$about])*
        pub struct $name $(<$life>)? {
            $(
                $(#[$member_about])*
                $(
                    #[serde(skip_serializing_if = "Option::is_none")]
                    #[schema(nullable = false)]
                    $member: Option<$optional>,
                )?
                $($member: $kind,)?
            )+
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub fn of($($from: $source),*) -> Self {
                $($(let $known = $derived;)+)?
                Self { $($member: $value,)+ }
            }
        }
    };
}
pub(super) use view;

view! {
    /// An object's ID and name.
    pub struct NamedView<'a> of(id: ObjectId, name: &'a str) {
        /// ID of the object.
        #[serde(rename = "_id")]
        id: ObjectId = id,
        /// Name of the object.
        name: &'a str = name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;

    use crate::catalog::{
        DeliveryStatus, Event, FieldType, KeyType, Outcome, Plan, Role, RuleState, RuleStatus, SchemaMode,
        SourceStatus, WebhookStatus,
    };

    #[test]
    fn enums_are_shown_by_their_names_in_the_api() {
        macro_rules! check {
            ($($kind:ident)+) => {$(
                for shown in $kind::ALL {
                    assert_eq!(to_value(shown).unwrap(), shown.name());
                }
            )+};
        }
        check!(DeliveryStatus Event FieldType KeyType Outcome Plan Role RuleState RuleStatus SchemaMode SourceStatus WebhookStatus);
    }
}
