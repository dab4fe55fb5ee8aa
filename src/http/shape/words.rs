//! Members with a fixed set of values, taken from the constants of the code.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::{FromJson, Place, described};
use crate::catalog::{
    DeliveryStatus, Duplicates, Event, FieldType, FormatName, Freshness, KeyType, Level, Operator, Outcome,
    PanelKind, Plan, Role, RuleState, RuleStatus, SchemaMode, SourceStatus, WebhookStatus,
};
use crate::http::write::ExportFormat;
use crate::service::analytics::Period;
use crate::service::query::Layout;

/// Parses one of the words of a set.
///
/// # Errors
/// A description of what is wrong with it.
pub fn word_of<T: Copy>(word: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
        format!("must be {}, not {word:?}", names.join(" or "))
    })
}

fn read<T: Copy>(value: &Value, place: &Place<'_>, words: &[(&str, T)]) -> Option<T> {
    place.parse(value, |word| word_of(word, words))
}

fn schema_of(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .into()
}

/// Describes types with a fixed set of values; those that occur in requests are also parsed.
macro_rules! words {
    (described { $($name:literal $kind:ty: $words:expr;)* } read { $($read_name:literal $read_kind:ty: $read_words:expr;)* }) => {
        $(described!($kind, $name, schema_of($words));)*
        $(
            described!($read_kind, $read_name, schema_of($read_words.map(|(name, _)| name)));

            impl FromJson for $read_kind {
                fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
                    read(value, place, &$read_words)
                }
            }
        )*
    };
}

words! {
    described {
        "KeyType" KeyType:
            KeyType::ALL.map(KeyType::name);
        "BucketStatus" BucketStatusDoc: ["active"];
        "EvaluationState" RuleState: RuleState::ALL.map(RuleState::name);
        "RuleState" RuleStateDoc: RuleState::ALL.map(RuleState::name).into_iter().chain(["unevaluated"]);
        "Operator" OperatorDoc: Operator::ALL.map(Operator::name);
        "HistoryKind" HistoryKindDoc: ["verdict", "trigger"];
        "DeliveredEvent" DeliveredEventDoc:
            Event::REGISTERED.map(Event::name).into_iter().chain([Event::WebhookTest.name()]);
        "Freshness" Freshness: Freshness::ALL.map(Freshness::name);
        "DeliveryStatus" DeliveryStatusDoc:
            [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed].map(DeliveryStatus::name);
        "Period" Period: Period::ALL.map(|period| period.name);
        "Health" HealthDoc: ["ok", "ready"];
        "NodeState" NodeStateDoc: ["member", "leaving"];
        "EvaluationMode" Mode: ["external"];
    }
    read {
        "Role" Role: Role::ALL.map(|it| (it.name(), it));
        "Plan" Plan: Plan::ALL.map(|it| (it.name(), it));
        "BucketKeyType" BucketKeyType: [KeyType::Write, KeyType::Read].map(|it| (it.name(), Self(it)));
        "OrganizationKeyType" OrganizationKeyType:
            [KeyType::Admin, KeyType::Integration].map(|it| (it.name(), Self(it)));
        "ExportFormat" ExportFormat: ExportFormat::ALL.map(|it| (it.name(), it));
        "FieldType" FieldType: FieldType::ALL.map(|it| (it.name(), it));
        "SchemaMode" SchemaMode: SchemaMode::ALL.map(|it| (it.name(), it));
        "Duplicates" Duplicates: Duplicates::ALL.map(|it| (it.name(), it));
        "SourceStatus" SourceStatus: SourceStatus::ALL.map(|it| (it.name(), it));
        "Layout" Layout: Self::ALL.map(|it| (it.name(), it));
        "Sort" Sort: [("asc", Self::Ascending), ("desc", Self::Descending)];
        "RuleStatus" RuleStatus: RuleStatus::ALL.map(|it| (it.name(), it));
        "Outcome" Outcome: Outcome::ALL.map(|it| (it.name(), it));
        "Event" Event: Self::REGISTERED.map(|it| (it.name(), it));
        "WebhookFormat" FormatName: FormatName::ALL.map(|it| (it.name(), it));
        "PanelKind" PanelKind: PanelKind::ALL.map(|it| (it.name(), it));
        "Level" Level: Level::ALL.map(|it| (it.name(), it));
        "WebhookStatus" WebhookStatus: WebhookStatus::ALL.map(|it| (it.name(), it));
    }
}

/// The only status of a bucket.
pub struct BucketStatusDoc;
/// A rule's state, plain rules included.
pub struct RuleStateDoc;
/// How a condition compares.
pub struct OperatorDoc;
/// What an entry of a history is.
pub struct HistoryKindDoc;
/// Events that are delivered to webhooks.
pub struct DeliveredEventDoc;
/// Where a delivery stands.
pub struct DeliveryStatusDoc;
/// How the server is.
pub struct HealthDoc;
/// Whether a node of a cluster is about to stop.
pub struct NodeStateDoc;

/// The type of a bucket's key.
#[derive(Clone, Copy, Debug)]
pub struct BucketKeyType(pub KeyType);

/// The type of an organization's key.
#[derive(Clone, Copy, Debug)]
pub struct OrganizationKeyType(pub KeyType);

/// Order by timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Ascending,
    Descending,
}

/// Who evaluates a rule: always external evaluators.
#[derive(Clone, Copy, Debug)]
pub struct Mode;

impl FromJson for Mode {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        if value.as_str() == Some("internal") {
            place.fault("is reserved: rules are judged by external evaluators, send \"external\"");
            return None;
        }
        read(value, place, &[("external", Self)])
    }
}
