//! Types that are described and never made: errors, and what other rooms write as JSON.

use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use serde_json::Value;

use crate::http::resources::evaluations::StandingView;
use crate::http::shape::{OperatorDoc, described};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Body of every error.
#[derive(ToSchema)]
#[schema(as = Error)]
pub struct ErrorDoc {
    /// The type, such as `Validation Error`.
    pub error: String,
    /// What happened and what to change.
    pub message: String,
    /// All faults of the request, each at its place.
    #[schema(nullable = false)]
    pub details: Option<Vec<DetailDoc>>,
    /// The request's id, to quote; on 500.
    #[schema(rename = "requestId", nullable = false)]
    pub request_id: Option<String>,
}

/// A fault of the request.
#[derive(ToSchema)]
#[schema(as = ErrorDetail)]
pub struct DetailDoc {
    /// Where: names of members from the outside in, places in arrays as decimals.
    pub path: Vec<String>,
    /// What is wrong.
    pub message: String,
}

/// A verdict that came too late, too early, or for a rule that is not active.
#[derive(ToSchema)]
#[schema(as = VerdictConflict)]
pub struct VerdictConflictDoc {
    /// `Conflict`.
    pub error: String,
    /// Why.
    pub message: String,
    /// Where the rule stands: a retry can tell that its first try had succeeded.
    pub evaluation: StandingView,
}

/// What a condition's words were understood to say.
#[derive(ToSchema)]
#[schema(as = ParsedCondition)]
pub struct ParsedConditionDoc {
    /// A field of the source.
    pub field: String,
    /// How it is compared.
    pub operator: OperatorDoc,
    /// What it is compared with: a number, a string or a boolean; `[low, high]` for ranges.
    pub value: Value,
    /// True for changes in percent.
    #[schema(nullable = false)]
    pub percent: Option<bool>,
}

/// A value of a field; null is no measurement.
pub struct MeasurementDoc;

described!(
    MeasurementDoc,
    "Measurement",
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([
            Type::Number,
            Type::String,
            Type::Boolean,
            Type::Null
        ]))
        .description(Some("A value of the field's type; null is no measurement."))
);

described!(
    ObjectId,
    "ObjectId",
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("24 lowercase hexadecimal digits."))
        .pattern(Some("^[0-9a-f]{24}$"))
);

described!(
    Timestamp,
    "Timestamp",
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("ISO 8601. Answers are in UTC."))
);
