//! The tools: names, descriptions, schemas of their arguments, and what hosts may know of them. Pure.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Rows of a query that names no limit.
pub const ROWS_DEFAULT: u64 = 200;
/// Entries of a list that names no limit.
pub const LIST_DEFAULT: u64 = 50;
/// Due rules without a limit: each has its queries with it.
pub const DUE_DEFAULT: u64 = 10;

/// What a client is told of the server.
pub const INSTRUCTIONS: &str = "tidewatch keeps time series. A bucket holds data sources; a data source has a schema of \
     fields (number, string, boolean) and points with a timestamp, values and metadata. Find ids with list_buckets and \
     list_sources before you query. Times are ISO 8601, UTC. Prefer groups (aggregation and groupBy) to raw points. \
     To evaluate alert rules: due lists the rules that wait for a verdict; post each of their queries unchanged with \
     query, decide from the rows, and record one verdict for each rule.";

/// The body of `POST /api/data/query` as a JSON Schema.
const QUERY_SCHEMA: &str = include_str!("query_schema.json");

/// The tools by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolName {
    ListBuckets,
    ListSources,
    ListRules,
    Query,
    Due,
    Verdict,
}

impl ToolName {
    pub const ALL: [Self; 6] = [
        Self::ListBuckets,
        Self::ListSources,
        Self::ListRules,
        Self::Query,
        Self::Due,
        Self::Verdict,
    ];

    /// The name as clients call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ListBuckets => "list_buckets",
            Self::ListSources => "list_sources",
            Self::ListRules => "list_rules",
            Self::Query => "query",
            Self::Due => "due",
            Self::Verdict => "verdict",
        }
    }

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// Which keys may use it, as the end of a sentence.
    pub fn keys(self) -> &'static str {
        match self {
            Self::ListBuckets => "list_buckets needs an admin key",
            Self::ListSources => "list_sources needs an admin key, or a key of that bucket",
            Self::ListRules => "list_rules needs an admin key, or a key of that bucket",
            Self::Query => "query needs an admin or integration key, or a key of that bucket",
            Self::Due => "due needs an integration or admin key",
            Self::Verdict => "verdict needs an integration or admin key",
        }
    }

    /// The tool as clients see it.
    pub fn describe(self) -> Tool {
        let tool = Tool::new(self.as_str(), self.description(), Arc::new(self.schema()));
        let hints = ToolAnnotations::with_title(self.title())
            .read_only(self.is_read_only())
            .destructive(false)
            .idempotent(self != Self::Verdict)
            .open_world(false);
        tool.with_annotations(hints)
    }

    fn title(self) -> &'static str {
        match self {
            Self::ListBuckets => "List buckets",
            Self::ListSources => "List data sources",
            Self::ListRules => "List alert rules",
            Self::Query => "Query points",
            Self::Due => "List rules that are due",
            Self::Verdict => "Record a verdict",
        }
    }

    /// `due` with a claim hides the rules from other evaluators for a while.
    fn is_read_only(self) -> bool {
        !matches!(self, Self::Due | Self::Verdict)
    }

    fn description(self) -> &'static str {
        match self {
            Self::ListBuckets => {
                "Lists the buckets of the organization, oldest first, with ids, names and retention."
            }
            Self::ListSources => {
                "Lists the data sources of a bucket with their ids, names, schemas (the fields that a query can name, with \
                 type and unit), dimensions (labels that split a source into series; absent or null: none), freshness, \
                 and stats: number of points, first and last timestamp."
            }
            Self::ListRules => {
                "Lists the alert rules of a bucket with condition, state (armed, firing, clearing, unevaluated), last \
                 outcome and times. It does not evaluate them."
            }
            Self::Query => {
                "Reads points of a bucket, or groups of them by steps of time. For an overview use aggregation with \
                 groupBy, or maxPoints; raw points only for short ranges. Returns rows in data, and in metadata whether \
                 there are more. Without limit, at most 200 rows. A query listed by due is sent unchanged."
            }
            Self::Due => {
                "Lists the alert rules that wait for a verdict now, most overdue first, with condition, kind and \
                 parameters, and for each input a query to send unchanged. With claimSeconds the listed rules are \
                 reserved: other evaluators do not see them until that time is over or their verdict is recorded."
            }
            Self::Verdict => {
                "Records whether the condition of a rule holds. Use it only for a rule that due has just listed, after \
                 its queries have been read, and once for each listing: met can fire the rule and notify people, \
                 not_met lets it clear, inconclusive changes nothing and is right when the rows allow no decision (too \
                 few, missing, contradictory). Never use it to try something out, nor to silence an alert. The service \
                 accepts one verdict in each interval; the error 409 means that it has one already."
            }
        }
    }

    fn schema(self) -> JsonObject {
        let bucket = json!({"type": "string", "pattern": "^[0-9a-f]{24}$", "description": "Id of the bucket, from list_buckets."});
        let limit = |default: u64| json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": default, "description": "The most entries to return."});
        let offset = json!({"type": "integer", "minimum": 0, "default": 0, "description": "How many entries to skip."});
        let schema = match self {
            Self::ListBuckets => object(json!({"limit": limit(LIST_DEFAULT), "offset": offset}), &[]),
            Self::ListSources | Self::ListRules => object(
                json!({"bucketId": bucket, "limit": limit(LIST_DEFAULT), "offset": offset}),
                &["bucketId"],
            ),
            // Its text is valid JSON; a test reads it.
            Self::Query => serde_json::from_str(QUERY_SCHEMA).unwrap_or_default(),
            Self::Due => object(
                json!({
                    "limit": limit(DUE_DEFAULT),
                    "claimSeconds": {
                        "type": "integer", "minimum": 5, "maximum": 3600,
                        "description": "Reserves the listed rules for this many seconds: about as long as their evaluation takes. Without it nothing is reserved.",
                    },
                }),
                &[],
            ),
            Self::Verdict => object(
                json!({
                    "ruleId": {"type": "string", "pattern": "^[0-9a-f]{24}$", "description": "ruleId of an entry of due."},
                    "outcome": {
                        "type": "string", "enum": ["met", "not_met", "inconclusive"],
                        "description": "Whether the condition holds. inconclusive when the rows allow no decision.",
                    },
                    "evidence": {
                        "type": "object",
                        "description": "Why, for the rule's history and its alerts; at most 65,536 bytes. Members currentValue, threshold, operator and dataPoint are shown in alerts; explanation is a good name for your reasoning.",
                    },
                }),
                &["ruleId", "outcome"],
            ),
        };
        match schema {
            Value::Object(schema) => schema,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                JsonObject::new()
            }
        }
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
