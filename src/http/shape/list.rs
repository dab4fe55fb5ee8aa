//! Arrays, and members that may be absent or removed.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{FromJson, Place, Rule};

/// An array of `MIN` to `MAX` entries.
#[derive(Debug)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T, const MIN: usize, const MAX: usize> Default for List<T, MIN, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: FromJson, const MIN: usize, const MAX: usize> FromJson for List<T, MIN, MAX> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let entries = place.typed(value.as_array(), "an array", value)?;
        if !(MIN..=MAX).contains(&entries.len()) {
            place.fault(match MAX {
                usize::MAX => format!("must have {MIN} or more entries, not {}", entries.len()),
                _ => format!("must have {MIN} to {MAX} entries, not {}", entries.len()),
            });
            return None;
        }
        let mut read = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            read.extend(T::read(entry, &place.index(index)));
        }
        (read.len() == entries.len()).then_some(Self(read))
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        T::rules(all);
    }
}

impl<T: ToSchema, const MIN: usize, const MAX: usize> PartialSchema for List<T, MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(RefOr::Ref::<Schema>(Ref::from_schema_name(T::name())))
            .min_items((MIN > 0).then_some(MIN))
            .max_items((MAX < usize::MAX).then_some(MAX))
            .into()
    }
}

impl<T: ToSchema, const MIN: usize, const MAX: usize> ToSchema for List<T, MIN, MAX> {
    fn name() -> Cow<'static, str> {
        // Lists of one type may have different bounds.
        Cow::Owned(match MAX {
            usize::MAX => format!("{}List", T::name()),
            _ => format!("{}List{MAX}", T::name()),
        })
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((T::name().into_owned(), T::schema()));
        T::schemas(all);
    }
}

/// An optional member that may be absent, but not null.
#[derive(Clone, Debug, Default)]
pub struct Given<T>(pub Option<T>);

impl<T: FromJson> FromJson for Given<T> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        T::read(value, place).map(|read| Self(Some(read)))
    }

    fn absent(_: &Place<'_>) -> Option<Self> {
        Some(Self(None))
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        T::rules(all);
    }
}

/// A member of a change: absent (`None`), removed by null (`Some(None)`), or set.
#[derive(Clone, Debug, Default)]
pub struct Patch<T>(pub Option<Option<T>>);

impl<T: FromJson> FromJson for Patch<T> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        Option::<T>::read(value, place).map(|read| Self(Some(read)))
    }

    fn absent(_: &Place<'_>) -> Option<Self> {
        Some(Self(None))
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        T::rules(all);
    }
}

impl<T> Patch<T> {
    /// Converts the value.
    pub fn map<R>(self, make: impl FnOnce(T) -> R) -> Option<Option<R>> {
        self.0.map(|value| value.map(make))
    }
}
