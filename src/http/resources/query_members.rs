//! Members of a query that say what is computed: aggregations, steps, `fill`, `expressions`, `compare`, `top`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};

use crate::catalog::{Field, FieldType, Parameter};
use crate::http::shape::{FromJson, Integer, List, Object, Place, Sort, body, described, kind_of};
use crate::limits::{AGGREGATIONS_MAX, EXPRESSION_CHARS_MAX, EXPRESSIONS_MAX, FIELD_NAME_CHARS_MAX, TOP_MAX};
use crate::service::query::{
    Aggregation, Aggregations, Compare, Expression, Fill, GroupBy, NamedExpression, Top,
};

type Count = Integer<1, TOP_MAX>;

/// The expressions of a query.
pub type Expressions = List<ExpressionBody, 0, EXPRESSIONS_MAX>;

body! {
    /// Arithmetic over the fields of a row.
    pub struct ExpressionBody {
        /// Name of the result among the values of a row; not that of a field.
        #[schema(value_type = String, max_length = 128)]
        name: ResultName,
        /// Numbers, names of fields (in backquotes if they have other characters than letters, digits and underscores), `+`,
        /// `-`, `*`, `/`, parentheses, `min`, `max`, `abs`, `round`. The result is null if a field has no number in the row.
        #[schema(value_type = String, max_length = 1000, example = "power / (voltage * current)")]
        expression: ExpressionText,
    }
}

body! {
    /// The time with which an answer is compared.
    pub struct CompareBody {
        /// By how much earlier it is: a number and `s`, `m`, `h`, `d` or `w`, at most `3650d`. In a time zone, days and weeks
        /// are those of its calendar.
        #[schema(value_type = String, example = "7d")]
        offset: Compare,
    }
}

body! {
    /// The data sources to keep.
    pub struct TopBody {
        /// Their number.
        n: Count,
        /// The aggregation that is compared, over the whole range; it must be one of numbers.
        by: Compared,
        /// The field that is compared, a number field; it may be absent if `filters.fields` has a single one.
        field: Option<String>,
        /// `desc` (default) keeps the greatest, `asc` the least.
        order: Option<Sort>,
    }
}

/// Checks that a filled range has both ends.
pub fn filled_range_has_ends(query: &Object<'_>) {
    let filters = query.given("filters").and_then(Value::as_object);
    let has =
        |bound: &str| filters.is_some_and(|filters| filters.get(bound).is_some_and(|bound| !bound.is_null()));
    let is_filled = query.given("fill").is_some_and(|fill| fill != "none");
    if is_filled && !(has("startTime") && has("endTime")) {
        let message = "needs both ends of the range: filters.startTime and filters.endTime";
        query.place.member("fill").fault(message);
    }
}

/// The same as a schema.
pub fn filled_range_schema() -> Value {
    let given = json!({"not": {"type": "null"}});
    let range = json!({
        "type": "object", "required": ["startTime", "endTime"], "properties": {"startTime": given, "endTime": given}
    });
    json!({"anyOf": [
        {"properties": {"fill": {"enum": [null, "none"]}}},
        {"required": ["filters"], "properties": {"filters": range}},
    ]})
}

/// Checks that the field of `top` is given, or the only one.
pub fn top_has_a_field(query: &Object<'_>) {
    let Some(top) = query.given("top").and_then(Value::as_object) else {
        return;
    };
    let fields = query
        .given("filters")
        .and_then(|filters| filters.get("fields")?.as_array());
    if top.get("field").is_none_or(Value::is_null) && fields.is_none_or(|fields| fields.len() != 1) {
        let message = "is required, unless filters.fields has exactly one";
        query.place.member("top").member("field").fault(message);
    }
}

/// The same as a schema.
pub fn top_schema() -> Value {
    let field = json!({"type": "object", "required": ["field"], "properties": {"field": {"type": "string"}}});
    let fields = json!({"type": "array", "minItems": 1, "maxItems": 1});
    json!({"anyOf": [
        {"properties": {"top": {"type": "null"}}},
        {"properties": {"top": field}},
        {"required": ["filters"], "properties": {"filters": {"required": ["fields"], "properties": {"fields": fields}}}},
    ]})
}

/// Checks that no two expressions have the same name.
pub fn results_are_distinct(query: &Object<'_>) {
    let mut names = HashSet::new();
    let expressions = query.given("expressions").and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        if let Some(name) = expression.get("name").and_then(Value::as_str)
            && !names.insert(name.trim())
        {
            let place = query.place.member("expressions");
            let message = format!("must be unique; {name:?} is there twice");
            place.index(index).member("name").fault(message);
        }
    }
}

impl From<ExpressionBody> for NamedExpression {
    fn from(body: ExpressionBody) -> Self {
        let ExpressionText { text, expression } = body.expression;
        NamedExpression {
            name: body.name.0,
            text,
            expression,
        }
    }
}

impl From<TopBody> for Top {
    fn from(top: TopBody) -> Self {
        Top {
            n: top.n.0 as usize,
            by: top.by.0,
            field: top.field,
            ascending: top.order == Some(Sort::Ascending),
        }
    }
}

/// An aggregation of numbers.
#[derive(Debug)]
pub struct Compared(Aggregation);

impl FromJson for Compared {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let by = Aggregation::read(value, place)?;
        if !by.covers(FieldType::Number) {
            place.fault(format!("must be an aggregation of numbers, not {}", by.name()));
            return None;
        }
        Some(Self(by))
    }
}

described!(
    Compared,
    "NumberAggregation",
    aggregation_schema(FieldType::Number)
);

/// Name of a result, with the form of a field's name.
#[derive(Debug)]
pub struct ResultName(Arc<str>);

impl FromJson for ResultName {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.parse(value, |name| {
            Field::stored_name(name).map(|name| Self(name.into()))
        })
    }
}

/// An expression with its text.
#[derive(Debug)]
pub struct ExpressionText {
    text: Box<str>,
    expression: Expression,
}

impl FromJson for ExpressionText {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.parse(value, |text| {
            Ok::<_, String>(Self {
                text: text.into(),
                expression: Expression::parse(text)?,
            })
        })
    }
}

impl FromJson for Compare {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.parse(value, Self::parse)
    }
}

impl FromJson for GroupBy {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.parse(value, Self::parse)
    }
}

/// What stands in a row for a value that is missing; `None` leaves out rows without values.
#[derive(Clone, Copy, Debug)]
pub struct FillValue(pub Option<Fill>);

impl FillValue {
    /// The value as it is stored with the input of a rule.
    pub fn as_parameter(self) -> Parameter {
        let word = match self.0 {
            Some(Fill::Number(number)) => return Parameter::Number(number),
            None => "none",
            Some(Fill::Null) => "null",
            Some(Fill::Previous) => "previous",
            Some(Fill::Linear) => "linear",
        };
        Parameter::Text(word.into())
    }
}

impl FromJson for FillValue {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let number = value.as_f64().filter(|number| number.is_finite());
        let fill = match (value.as_str(), number) {
            (Some("none"), _) => None,
            (Some("null"), _) => Some(Fill::Null),
            (Some("previous"), _) => Some(Fill::Previous),
            (Some("linear"), _) => Some(Fill::Linear),
            (_, Some(number)) => Some(Fill::Number(number)),
            _ => {
                let found = value
                    .as_str()
                    .map_or(kind_of(value).to_owned(), |text| format!("{text:?}"));
                place.fault(format!(
                    "must be none, null, previous, linear or a number, not {found}"
                ));
                return None;
            }
        };
        Some(Self(fill))
    }
}

described!(
    FillValue,
    "Fill",
    OneOfBuilder::new()
        .item(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(["none", "null", "previous", "linear"]))
        )
        .item(ObjectBuilder::new().schema_type(Type::Number))
);

impl FromJson for Aggregation {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.parse(value, Self::parse)
    }
}

described!(
    Aggregation,
    "Aggregation",
    aggregation_schema(FieldType::Number).item(
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([Aggregation::TrueShare.name()]))
    )
);

/// The aggregations of fields of a type.
fn aggregation_schema(kind: FieldType) -> OneOfBuilder {
    let covers = |name: &&str| Aggregation::parse(name).is_ok_and(|aggregation| aggregation.covers(kind));
    OneOfBuilder::new()
        .item(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(Aggregation::names().filter(covers))),
        )
        .item(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .description(Some("A percentile from p1 to p99.9."))
                .pattern(Some(Aggregation::PERCENTILE_PATTERN)),
        )
}

impl FromJson for Aggregations {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        if !value.is_array() {
            return Aggregation::read(value, place).map(Self::One);
        }
        let List::<Aggregation, 1, AGGREGATIONS_MAX>(all) = FromJson::read(value, place)?;
        let mut are_different = true;
        for (index, one) in all.iter().enumerate() {
            if all[..index].contains(one) {
                place.index(index).fault(format!("{} is there twice", one.name()));
                are_different = false;
            }
        }
        are_different.then_some(Self::Several(all))
    }
}

described!(
    Aggregations,
    "Aggregations",
    OneOfBuilder::new().item(Aggregation::schema()).item(
        ArrayBuilder::new()
            .items(Aggregation::schema())
            .min_items(Some(1))
            .max_items(Some(AGGREGATIONS_MAX))
            .unique_items(true)
    )
);

const _: () = assert!(
    FIELD_NAME_CHARS_MAX == 128 && EXPRESSION_CHARS_MAX == 1_000,
    "as described"
);
