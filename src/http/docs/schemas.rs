//! Schemas of the API document whose JSON is built elsewhere: these types are never instantiated. Errors, conditions,
//! measurements, IDs and timestamps.

use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use serde_json::Value;

use crate::http::resources::evaluations::StandingView;
use crate::http::shape::{OperatorDoc, described};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Body of every error response.
#[derive(ToSchema)]
#[schema(as = Error)]
pub struct ErrorDoc {
    /// Error type, such as `Validation Error`.
    pub error: String,
    /// What went wrong and how to fix the request.
    pub message: String,
    /// All faults of the request, each with its path.
    #[schema(nullable = false)]
    pub details: Option<Vec<DetailDoc>>,
    /// Request ID to quote in a support request; present on 500.
    #[schema(rename = "requestId", nullable = false)]
    pub request_id: Option<String>,
}

/// A fault of the request.
#[derive(ToSchema)]
#[schema(as = ErrorDetail)]
pub struct DetailDoc {
    /// Path of the faulty value: member names from the outermost inward, array indexes as decimal strings.
    pub path: Vec<String>,
    /// Description of the fault.
    pub message: String,
}

/// Error for a verdict that is too early or too late, or whose rule is not active.
#[derive(ToSchema)]
#[schema(as = VerdictConflict)]
pub struct VerdictConflictDoc {
    /// Always `Conflict`.
    pub error: String,
    /// Reason for the conflict.
    pub message: String,
    /// Current state of the rule; a retry can detect that its first attempt succeeded.
    pub evaluation: StandingView,
}

/// A condition as parsed by the server.
#[derive(ToSchema)]
#[schema(as = ParsedCondition)]
pub struct ParsedConditionDoc {
    /// A field of the data source.
    pub field: String,
    /// Comparison operator.
    pub operator: OperatorDoc,
    /// Operand: a number, a string or a boolean; `[low, high]` for ranges.
    pub value: Value,
    /// True when the condition compares a change in percent.
    #[schema(nullable = false)]
    pub percent: Option<bool>,
}

/// A value of a field; null means no measurement.
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
        .description(Some("A value of the field's type; null means no measurement."))
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
        .description(Some("ISO 8601. Responses are always in UTC."))
);
