//! Schemas that no one route owns: errors, ids, times, and the words of the API as they stand in the code.

use std::borrow::Cow;
use std::collections::BTreeMap;

use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::catalog::{
    DeliveryStatus, Event, FieldType, KeyType, Operator, Outcome, Plan, RuleState, RuleStatus, SchemaMode,
    SourceStatus, WebhookStatus,
};
use crate::ids::ObjectId;
use crate::service::analytics::Period;
use crate::service::query::{Aggregation, LAYOUT_NAMES, UNIT_NAMES};
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

/// Field name to definition: 1 to 256 fields.
#[derive(ToSchema)]
#[schema(as = FieldsByName)]
pub struct SchemaDoc(pub BTreeMap<String, FieldDoc>);

/// A field's definition.
#[derive(ToSchema)]
#[schema(as = Field)]
pub struct FieldDoc {
    /// What its values are.
    #[schema(rename = "type")]
    pub kind: FieldType,
    /// Unit of measurement.
    #[schema(max_length = 200)]
    pub unit: Option<String>,
    /// Free text.
    #[schema(max_length = 4_096)]
    pub description: Option<String>,
}

/// Gives types schemas that are one of a few words.
macro_rules! words {
    ($($(#[$about:meta])* $name:literal $kind:ty: $words:expr;)*) => {$(
        impl PartialSchema for $kind {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($words)).into()
            }
        }

        impl ToSchema for $kind {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )*};
}

words! {
    "Plan" Plan: Plan::ALL.map(Plan::name);
    "KeyType" KeyType: [KeyType::Admin, KeyType::Write, KeyType::Read, KeyType::Integration].map(KeyType::name);
    "BucketKeyType" BucketKeyTypeDoc: [KeyType::Write, KeyType::Read].map(KeyType::name);
    "OrganizationKeyType" OrganizationKeyTypeDoc: [KeyType::Admin, KeyType::Integration].map(KeyType::name);
    "BucketStatus" BucketStatusDoc: ["active"];
    "FieldType" FieldType: FieldType::ALL.map(FieldType::name);
    "SchemaMode" SchemaMode: SchemaMode::ALL.map(SchemaMode::name);
    "SourceStatus" SourceStatus: SourceStatus::ALL.map(SourceStatus::name);
    "Aggregation" AggregationDoc: Aggregation::NAMES.map(|(name, _)| name);
    "GroupBy" GroupByDoc: UNIT_NAMES.map(|(name, _)| name);
    "Layout" LayoutDoc: LAYOUT_NAMES.map(|(name, _)| name);
    "Sort" SortDoc: ["asc", "desc"];
    "RuleStatus" RuleStatus: RuleStatus::ALL.map(RuleStatus::name);
    "EvaluationState" RuleState: RuleState::ALL.map(RuleState::name);
    "RuleState" RuleStateDoc: RuleState::ALL.map(RuleState::name).into_iter().chain(["unevaluated"]);
    "EvaluationMode" EvaluationModeDoc: ["external"];
    "Outcome" Outcome: Outcome::ALL.map(Outcome::name);
    "Operator" OperatorDoc: Operator::ALL.map(Operator::name);
    "HistoryKind" HistoryKindDoc: ["verdict", "trigger"];
    "Event" EventDoc: Event::REGISTERED.map(Event::name);
    "DeliveredEvent" DeliveredEventDoc: Event::REGISTERED.map(Event::name).into_iter().chain([Event::WebhookTest.name()]);
    "DeliveryStatus" DeliveryStatusDoc:
        [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed].map(DeliveryStatus::name);
    "WebhookStatus" WebhookStatus: WebhookStatus::ALL.map(WebhookStatus::name);
    "Period" PeriodDoc: Period::ALL.map(|period| period.name);
    "Health" HealthDoc: ["ok", "ready"];
}

/// Types of the keys of a bucket.
pub struct BucketKeyTypeDoc;
/// Types of the keys of an organization.
pub struct OrganizationKeyTypeDoc;
/// The only status of a bucket.
pub struct BucketStatusDoc;
/// What is told of a group.
pub struct AggregationDoc;
/// Calendar units.
pub struct GroupByDoc;
/// How the rows of an answer are laid out.
pub struct LayoutDoc;
/// Order by timestamp.
pub struct SortDoc;
/// A rule's state, plain rules included.
pub struct RuleStateDoc;
/// Who judges.
pub struct EvaluationModeDoc;
/// How a condition compares.
pub struct OperatorDoc;
/// What a history tells of.
pub struct HistoryKindDoc;
/// Events that a webhook can be registered for.
pub struct EventDoc;
/// Events that a webhook can be told of.
pub struct DeliveredEventDoc;
/// Where a delivery stands.
pub struct DeliveryStatusDoc;
/// What analytics look back on.
pub struct PeriodDoc;
/// How the server is.
pub struct HealthDoc;
/// A value of a field; null is no measurement.
pub struct MeasurementDoc;
/// A parameter of a rule.
pub struct ParameterDoc;

impl PartialSchema for MeasurementDoc {
    fn schema() -> RefOr<Schema> {
        one_of_types(
            "A value of the field's type; null is no measurement.",
            [Type::Number, Type::String, Type::Boolean, Type::Null],
        )
    }
}

impl ToSchema for MeasurementDoc {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Measurement")
    }
}

impl PartialSchema for ParameterDoc {
    fn schema() -> RefOr<Schema> {
        one_of_types(
            "A number, a string or a boolean.",
            [Type::Number, Type::String, Type::Boolean],
        )
    }
}

impl ToSchema for ParameterDoc {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Parameter")
    }
}

fn one_of_types(description: &str, types: impl IntoIterator<Item = Type>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter(types))
        .description(Some(description))
        .into()
}

impl PartialSchema for ObjectId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("24 lowercase hexadecimal digits."))
            .pattern(Some("^[0-9a-f]{24}$"))
            .into()
    }
}

impl ToSchema for ObjectId {}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("ISO 8601. Answers are in UTC."))
            .into()
    }
}

impl ToSchema for Timestamp {}
