//! Numbers with bounds.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::{FromJson, Place, described, kind_of};

/// An integer from `MIN` to `MAX`; `30.0` is the integer 30.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> FromJson for Integer<MIN, MAX> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let whole =
            |float: f64| (float.fract() == 0.0 && (0.0..=9e15).contains(&float)).then_some(float as u64);
        let integer = value
            .as_u64()
            .or_else(|| value.as_f64().and_then(whole))
            .filter(|integer| (MIN..=MAX).contains(integer));
        let fault = || format!("must be an integer from {MIN} to {MAX}, not {}", found(value));
        place.check(integer.map(Self).ok_or_else(fault))
    }
}

described!(Integer<MIN, MAX> where [const MIN: u64, const MAX: u64], format!("IntegerFrom{MIN}To{MAX}"), bounded(Type::Integer, MIN, MAX));

/// A finite number from `MIN` to `MAX`; a `MAX` of `u64::MAX` means no upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number<const MIN: u64, const MAX: u64>(pub f64);

impl<const MIN: u64, const MAX: u64> FromJson for Number<MIN, MAX> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let max = if MAX == u64::MAX { f64::MAX } else { MAX as f64 };
        let number = value
            .as_f64()
            .filter(|number| (MIN as f64..=max).contains(number));
        let fault = || match MAX {
            u64::MAX => format!("must be a number, {MIN} or more, not {}", found(value)),
            _ => format!("must be a number from {MIN} to {MAX}, not {}", found(value)),
        };
        place.check(number.map(Self).ok_or_else(fault))
    }
}

described!(Number<MIN, MAX> where [const MIN: u64, const MAX: u64], match MAX { u64::MAX => format!("NumberFrom{MIN}"), _ => format!("NumberFrom{MIN}To{MAX}") }, bounded(Type::Number, MIN, MAX));

/// Any finite number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finite(pub f64);

impl FromJson for Finite {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let number = value.as_f64().filter(|number| number.is_finite());
        place.check(
            number
                .map(Self)
                .ok_or_else(|| format!("must be a number, not {}", found(value))),
        )
    }
}

described!(
    Finite,
    "FiniteNumber",
    ObjectBuilder::new().schema_type(Type::Number)
);

fn bounded(kind: Type, min: u64, max: u64) -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(kind).minimum(Some(min as f64));
    number.maximum((max < u64::MAX).then_some(max as f64))
}

/// Describes a value in an error: a number as it was sent, anything else by its type.
fn found(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => kind_of(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Faults;
    use super::*;

    #[test]
    fn integers_are_integers() {
        let read = |value: &Value| Integer::<1, 30>::read(value, &Faults::default().root());
        assert_eq!(read(&json!(30)), Some(Integer(30)));
        assert_eq!(read(&json!(30.0)), Some(Integer(30)));
        for wrong in [
            json!(0),
            json!(31),
            json!(-1),
            json!(1.5),
            json!("30"),
            json!(true),
            json!(1e300),
            json!(null),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }
}
