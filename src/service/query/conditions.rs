//! `filters.values`: conditions on the values of points. A point without the field never matches.

use std::borrow::Cow;
use std::collections::HashSet;

use engine::rows::Scalar;

use crate::catalog::FieldType;

/// What the values of a field must be: all tests must hold.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Name of the field.
    pub field: String,
    /// The tests, in the order in which they were sent.
    pub tests: Vec<Test>,
}

/// An operator and what it compares with.
#[derive(Clone, Debug)]
pub enum Test {
    /// Greater than a number.
    Gt(f64),
    /// At least a number.
    Gte(f64),
    /// Less than a number.
    Lt(f64),
    /// At most a number.
    Lte(f64),
    /// Equal to a value.
    Eq(Literal),
    /// A value that is not equal to this one.
    Neq(Literal),
    /// One of these values.
    In(Set),
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A finite number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(Box<str>),
}

/// Values to be found quickly.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// As they were sent.
    pub values: Vec<Literal>,
    /// Ascending.
    numbers: Vec<f64>,
    texts: HashSet<Box<str>>,
}

impl Literal {
    /// The type of field that may have this value.
    pub fn kind(&self) -> FieldType {
        match self {
            Literal::Number(_) => FieldType::Number,
            Literal::Boolean(_) => FieldType::Boolean,
            Literal::Text(_) => FieldType::String,
        }
    }

    fn is(&self, value: Scalar<'_>) -> bool {
        match (self, value) {
            (Literal::Number(one), Scalar::Number(other)) => *one == other,
            (Literal::Boolean(one), Scalar::Boolean(other)) => *one == other,
            (Literal::Text(one), Scalar::Text(other)) => **one == *other,
            _ => false,
        }
    }
}

impl Set {
    /// A set of these values.
    pub fn new(values: Vec<Literal>) -> Self {
        let mut set = Set::default();
        for value in &values {
            match value {
                Literal::Number(number) => set.numbers.push(*number),
                Literal::Text(text) => drop(set.texts.insert(text.clone())),
                Literal::Boolean(_) => {}
            }
        }
        set.numbers.sort_unstable_by(f64::total_cmp);
        set.values = values;
        set
    }

    fn has(&self, value: Scalar<'_>) -> bool {
        match value {
            Scalar::Number(number) => {
                let from = self.numbers.partition_point(|one| *one < number);
                self.numbers.get(from) == Some(&number)
            }
            Scalar::Text(text) => self.texts.contains(text),
            Scalar::Boolean(value) => self.values.contains(&Literal::Boolean(value)),
        }
    }
}

impl Test {
    /// The operator's name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Test::Gt(_) => "gt",
            Test::Gte(_) => "gte",
            Test::Lt(_) => "lt",
            Test::Lte(_) => "lte",
            Test::Eq(_) => "eq",
            Test::Neq(_) => "neq",
            Test::In(_) => "in",
        }
    }

    /// What it compares with: one value, or all of a set.
    pub fn operands(&self) -> Cow<'_, [Literal]> {
        match self {
            Test::Gt(bound) | Test::Gte(bound) | Test::Lt(bound) | Test::Lte(bound) => {
                Cow::Owned(vec![Literal::Number(*bound)])
            }
            Test::Eq(value) | Test::Neq(value) => Cow::Borrowed(std::slice::from_ref(value)),
            Test::In(set) => Cow::Borrowed(&set.values),
        }
    }

    fn holds(&self, value: Scalar<'_>) -> bool {
        match (self, value) {
            (Test::Gt(bound), Scalar::Number(number)) => number > *bound,
            (Test::Gte(bound), Scalar::Number(number)) => number >= *bound,
            (Test::Lt(bound), Scalar::Number(number)) => number < *bound,
            (Test::Lte(bound), Scalar::Number(number)) => number <= *bound,
            (Test::Gt(_) | Test::Gte(_) | Test::Lt(_) | Test::Lte(_), _) => false,
            (Test::Eq(wanted), value) => wanted.is(value),
            (Test::Neq(unwanted), value) => !unwanted.is(value),
            (Test::In(set), value) => set.has(value),
        }
    }

    /// Numbers outside of these bounds do not pass.
    fn bounds(&self) -> (f64, f64) {
        match self {
            Test::Gt(bound) | Test::Gte(bound) => (*bound, f64::INFINITY),
            Test::Lt(bound) | Test::Lte(bound) => (f64::NEG_INFINITY, *bound),
            Test::Eq(Literal::Number(number)) => (*number, *number),
            Test::In(set) => match &*set.numbers {
                [least, .., greatest] => (*least, *greatest),
                [only] => (*only, *only),
                [] => (f64::INFINITY, f64::NEG_INFINITY),
            },
            Test::Eq(_) | Test::Neq(_) => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

impl Condition {
    /// Whether a value matches.
    pub fn passes(&self, value: Scalar<'_>) -> bool {
        self.tests.iter().all(|test| test.holds(value))
    }

    /// Numbers outside of these bounds do not match.
    pub fn bounds(&self) -> (f64, f64) {
        let bounds = self.tests.iter().map(Test::bounds);
        bounds.fold(
            (f64::NEG_INFINITY, f64::INFINITY),
            |(least, greatest), (low, high)| (least.max(low), greatest.min(high)),
        )
    }

    /// Whether values of this type can match.
    pub fn fits(&self, kind: FieldType) -> bool {
        let is_of_kind = |literal: &Literal| literal.kind() == kind;
        self.tests
            .iter()
            .all(|test| test.operands().iter().any(is_of_kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(tests: Vec<Test>) -> Condition {
        Condition {
            field: "level".to_owned(),
            tests,
        }
    }

    #[test]
    fn all_tests_must_hold_and_bounds_are_theirs() {
        let between = condition(vec![Test::Gt(1.0), Test::Lte(3.0)]);
        assert_eq!(between.bounds(), (1.0, 3.0));
        let passes = [0.0, 1.0, 1.5, 3.0, 3.5].map(|number| between.passes(Scalar::Number(number)));
        assert_eq!(passes, [false, false, true, true, false]);
        assert!(!between.passes(Scalar::Text("2")) && !between.passes(Scalar::Boolean(true)));
        let other = condition(vec![Test::Neq(Literal::Number(0.0))]);
        assert_eq!(other.bounds(), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(!other.passes(Scalar::Number(-0.0)) && other.passes(Scalar::Number(0.1)));
    }

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let values = [3.0, -1.0, 0.0].map(Literal::Number).into_iter();
        let values = values.chain([Literal::Text("on".into()), Literal::Boolean(true)]);
        let one_of = condition(vec![Test::In(Set::new(values.collect()))]);
        assert_eq!(one_of.bounds(), (-1.0, 3.0));
        for value in [
            Scalar::Number(3.0),
            Scalar::Number(-0.0),
            Scalar::Text("on"),
            Scalar::Boolean(true),
        ] {
            assert!(one_of.passes(value), "{value:?}");
        }
        for value in [
            Scalar::Number(2.0),
            Scalar::Number(4.0),
            Scalar::Text("off"),
            Scalar::Boolean(false),
        ] {
            assert!(!one_of.passes(value), "{value:?}");
        }
    }
}
