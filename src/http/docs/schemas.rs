//! Schemas of the API document whose JSON is built elsewhere: these types are never instantiated. Errors,
//! measurements, IDs and timestamps.

use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use crate::http::resources::evaluations::StandingView;
use crate::http::shape::described;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

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
