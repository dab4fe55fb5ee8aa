//! Ids of the path and parameters of the query string.

use std::fmt::Display;

use actix_web::HttpRequest;
use actix_web::web::Query;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::shape::{Faults, word_of};
use crate::ids::ObjectId;
use crate::ingest::timestamp;
use crate::limits::{CLAIM_SECONDS, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};
use crate::service::analytics::Period;
use crate::service::annotations::AnnotationFilter;
use crate::service::data::{BucketName, EpochUnit, ImportFormat, ImportSettings};
use crate::service::page::{Page, PageRequest};

/// Units of times that are numbers.
const EPOCH_UNITS: [(&str, EpochUnit); 4] = [
    ("ns", EpochUnit(1)),
    ("us", EpochUnit(1_000)),
    ("ms", EpochUnit(1_000_000)),
    ("s", EpochUnit(1_000_000_000)),
];

/// The ids of the path, in their order, and the parameters of the query string that a handler takes.
pub trait Params: Sized {
    /// Number of ids in the path.
    const IDS: usize = 0;

    /// Reads them; `None` when there are faults, which are recorded. `first_id`: the index of the first id to read.
    fn read(request: &HttpRequest, first_id: usize, faults: &Faults) -> Option<Self>;

    /// The parameters of the query string in OpenAPI. Those of the path follow from the path itself.
    fn describe() -> Vec<Value> {
        Vec::new()
    }
}

impl Params for () {
    fn read(_: &HttpRequest, _: usize, _: &Faults) -> Option<Self> {
        Some(())
    }
}

impl<A: Params, B: Params> Params for (A, B) {
    const IDS: usize = A::IDS + B::IDS;

    fn read(request: &HttpRequest, first_id: usize, faults: &Faults) -> Option<Self> {
        let first = A::read(request, first_id, faults);
        first.zip(B::read(request, first_id + A::IDS, faults))
    }

    fn describe() -> Vec<Value> {
        [A::describe(), B::describe()].concat()
    }
}

impl Params for ObjectId {
    const IDS: usize = 1;

    fn read(request: &HttpRequest, index: usize, faults: &Faults) -> Option<Self> {
        let (name, text) = request.match_info().iter().nth(index).unwrap_or_default();
        faults.root().member(name).check(text.parse())
    }
}

/// The token of a link, which says who calls.
pub struct LinkToken;

impl Params for LinkToken {
    const IDS: usize = 1;

    fn read(_: &HttpRequest, _: usize, _: &Faults) -> Option<Self> {
        Some(Self)
    }
}

/// The place of a panel in its board, from 0.
pub struct PanelIndex(pub usize);

impl Params for PanelIndex {
    const IDS: usize = 1;

    fn read(request: &HttpRequest, index: usize, faults: &Faults) -> Option<Self> {
        let (name, text) = request.match_info().iter().nth(index).unwrap_or_default();
        let is_plain = text.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        let fault = || format!("must be the place of a panel, from 0, not {text:?}");
        faults
            .root()
            .member(name)
            .check(number.map(Self).ok_or_else(fault))
    }
}

/// How a request of an agent names its bucket: `bucket`, `db`, or the header `X-Bucket`.
pub struct BucketParam(pub BucketName);

impl BucketParam {
    /// The name among parameters, of which `last` returns the last value.
    pub fn among<'p>(last: impl Fn(&str) -> Option<&'p str>) -> Option<&'p str> {
        ["bucket", "db"].into_iter().find_map(last)
    }
}

impl Params for BucketParam {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let header = request
            .headers()
            .get("x-bucket")
            .and_then(|value| value.to_str().ok());
        let named = Self::among(|name| pairs.last(name));
        let named = named.or(header).map(str::to_owned);
        Some(Self(BucketName(named)))
    }

    fn describe() -> Vec<Value> {
        let about = "The bucket, by its id or name, with an admin key; that of a bucket names its own.";
        let named = |name| query_parameter(name, about, json!({"type": "string"}));
        vec![named("bucket"), named("db")]
    }
}

/// A bucket that the path names, by its id or name.
pub struct BucketInPath(pub BucketName);

impl Params for BucketInPath {
    const IDS: usize = 1;

    fn read(request: &HttpRequest, index: usize, faults: &Faults) -> Option<Self> {
        Some(Self(BucketName(Some(text_in_path(request, index, faults)?))))
    }
}

/// The name of a dimension, in the path: for Prometheus that of a label.
pub struct DimensionName(pub String);

impl Params for DimensionName {
    const IDS: usize = 1;

    fn read(request: &HttpRequest, index: usize, faults: &Faults) -> Option<Self> {
        text_in_path(request, index, faults).map(Self)
    }
}

/// A text in the path.
fn text_in_path(request: &HttpRequest, index: usize, faults: &Faults) -> Option<String> {
    let (name, text) = request.match_info().iter().nth(index).unwrap_or_default();
    // The router leaves encoded what means something in a path.
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map(std::borrow::Cow::into_owned);
    faults
        .root()
        .member(name)
        .check(decoded.map_err(|_| "must be UTF-8"))
}

/// The unit of timestamps of line protocol; empty when absent.
pub struct PrecisionParam(pub String);

impl Params for PrecisionParam {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        Some(Self(pairs.last("precision").unwrap_or_default().to_owned()))
    }

    fn describe() -> Vec<Value> {
        let about = "Unit of the timestamps: `ns` (default), `us`, `ms` or `s`.";
        vec![query_parameter("precision", about, json!({"type": "string"}))]
    }
}

/// The beginning of the values to list.
pub struct Prefix(pub String);

impl Params for Prefix {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        Some(Self(pairs.last("prefix").unwrap_or_default().to_owned()))
    }

    fn describe() -> Vec<Value> {
        let about = "How the values begin; case matters. All values when absent.";
        vec![query_parameter("prefix", about, json!({"type": "string"}))]
    }
}

/// What a request says of the file that it imports.
pub struct ImportParams {
    /// The format; by the type of the content when absent.
    pub format: Option<ImportFormat>,
    pub settings: ImportSettings,
}

impl Params for ImportParams {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let word = |word: &str| {
            let formats = ImportFormat::ALL.map(|format| (format.name(), format));
            word_of(word, &formats)
        };
        let format = pairs.parsed("format", word, faults);
        let unit = pairs.parsed("precision", |word: &str| word_of(word, &EPOCH_UNITS), faults);
        let source = pairs.last("source").map(str::to_owned);
        let source = faults.root().member("source").check(source.ok_or("is required"));
        let dimensions = pairs.last("dimensions").unwrap_or_default();
        let dimensions = dimensions.split(',').filter(|name| !name.is_empty());
        Some(Self {
            format: format?,
            settings: ImportSettings {
                source: source?,
                time: pairs.last("time").map(str::to_owned),
                dimensions: dimensions.map(str::to_owned).collect(),
                unit: unit?,
            },
        })
    }

    fn describe() -> Vec<Value> {
        let text = || json!({"type": "string"});
        let one_of = |words: Vec<&str>| json!({"type": "string", "enum": words});
        let formats = ImportFormat::ALL.map(ImportFormat::name).to_vec();
        let units = EPOCH_UNITS.map(|(name, _)| name).to_vec();
        let mut source = query_parameter(
            "source",
            "The data source, by its id or name. One that does not exist is created, with all dimensions, and does \
             not take points twice.",
            text(),
        );
        source["required"] = json!(true);
        vec![
            source,
            query_parameter("format", "By the Content-Type when absent.", one_of(formats)),
            query_parameter(
                "time",
                "The column with the time; `timestamp`, else `time`, when absent.",
                text(),
            ),
            query_parameter(
                "dimensions",
                "Columns that are dimensions, separated by commas.",
                text(),
            ),
            query_parameter(
                "precision",
                "The unit of times that are numbers. When absent, times are ISO 8601.",
                one_of(units),
            ),
        ]
    }
}

/// Names of dimensions, each with the values of which a series must have one: all parameters but `limit` and `offset`.
pub struct WantedLabels(pub Vec<(String, Vec<String>)>);

impl Params for WantedLabels {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let Pairs(pairs) = Pairs::of(request, faults)?;
        let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
        let pairs = pairs.into_iter();
        for (name, value) in pairs.filter(|(name, _)| name != "limit" && name != "offset") {
            match wanted.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => wanted.push((name, vec![value])),
            }
        }
        Some(Self(wanted))
    }

    fn describe() -> Vec<Value> {
        let about = "Names of dimensions with values: series that have one of them. A name may be there several times.";
        let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
        vec![json!({
            "name": "dimensions", "in": "query", "description": about, "required": false, "style": "form",
            "explode": true, "schema": schema
        })]
    }
}

/// `limit` and `offset` of a list.
impl Params for PageRequest {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let limit = pairs.integer("limit", 1, LIST_LIMIT_MAX, faults);
        let offset = pairs.integer("offset", 0, u64::MAX, faults);
        Some(Self {
            limit: limit?.unwrap_or(LIST_LIMIT_DEFAULT),
            offset: offset?.unwrap_or(0),
        })
    }

    fn describe() -> Vec<Value> {
        let offset = json!({"type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX});
        vec![
            limit_parameter("Most entries; 100 when absent."),
            query_parameter("offset", "Entries to pass over; 0 when absent.", offset),
        ]
    }
}

impl Params for Period {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let Some(word) = pairs.last("period") else {
            return Some(Self::DEFAULT);
        };
        let periods = Self::ALL.map(|period| (period.name, period));
        faults.root().member("period").check(word_of(word, &periods))
    }

    fn describe() -> Vec<Value> {
        let words = Self::ALL.map(|period| period.name);
        let schema = json!({"type": "string", "enum": words});
        vec![query_parameter("period", "`7d` when absent.", schema)]
    }
}

/// Which annotations to list.
impl Params for AnnotationFilter {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let moment = |text: &str| timestamp::parse(text).map_err(|error| error.to_string());
        let bucket_id = pairs.parsed("bucketId", str::parse, faults);
        let source_id = pairs.parsed("dataSourceId", str::parse, faults);
        let start_ns = pairs.parsed("startTime", moment, faults);
        let end_ns = pairs.parsed("endTime", moment, faults);
        let (start_ns, end_ns) = (start_ns?, end_ns?);
        if start_ns.zip(end_ns).is_some_and(|(start, end)| start > end) {
            faults
                .root()
                .member("startTime")
                .fault("must not be after endTime");
            return None;
        }
        Some(Self {
            bucket_id: bucket_id?,
            source_id: source_id?,
            range_ns: (start_ns.unwrap_or(i64::MIN), end_ns.unwrap_or(i64::MAX)),
        })
    }

    fn describe() -> Vec<Value> {
        let id = || json!({"$ref": "#/components/schemas/ObjectId"});
        let time = || json!({"type": "string", "format": "date-time"});
        vec![
            query_parameter("bucketId", "Those of this bucket; all when absent.", id()),
            query_parameter("dataSourceId", "Those of this data source.", id()),
            query_parameter("startTime", "Those that end at this time or later.", time()),
            query_parameter("endTime", "Those that begin at this time or earlier.", time()),
        ]
    }
}

/// How many of the due rules to list, and for how long they are claimed by the caller.
pub struct DueParams {
    /// Most rules.
    pub limit: u64,
    /// Seconds for which the listed rules are left out of other polls; absent: they are not claimed.
    pub claim: Option<u64>,
}

impl Params for DueParams {
    fn read(request: &HttpRequest, _: usize, faults: &Faults) -> Option<Self> {
        let pairs = Pairs::of(request, faults)?;
        let (least, most) = CLAIM_SECONDS;
        let limit = pairs.integer("limit", 1, LIST_LIMIT_MAX, faults);
        let claim = pairs.integer("claim", least, most, faults);
        Some(Self {
            limit: limit?.unwrap_or(LIST_LIMIT_DEFAULT),
            claim: claim?,
        })
    }

    fn describe() -> Vec<Value> {
        let (least, most) = CLAIM_SECONDS;
        let seconds = json!({"type": "integer", "minimum": least, "maximum": most});
        let about =
            "Seconds for which the listed rules are left out of other polls; absent: they are not claimed.";
        vec![
            limit_parameter("Most rules; 100 when absent."),
            query_parameter("claim", about, seconds),
        ]
    }
}

fn limit_parameter(about: &str) -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": LIST_LIMIT_MAX});
    query_parameter("limit", about, schema)
}

fn query_parameter(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "required": false, "schema": schema})
}

/// The decoded pairs of a query string.
struct Pairs(Vec<(String, String)>);

impl Pairs {
    fn of(request: &HttpRequest, faults: &Faults) -> Option<Self> {
        let pairs = Query::<Vec<(String, String)>>::from_query(request.query_string());
        let pairs = pairs.map_err(|_| "the query string is malformed");
        faults.root().check(pairs).map(|pairs| Self(pairs.into_inner()))
    }

    fn last(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A value of this form: `Some(None)` when it is absent, `None` when it is at fault.
    fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
        faults: &Faults,
    ) -> Option<Option<T>> {
        match self.last(name) {
            None => Some(None),
            Some(text) => faults.root().member(name).check(parse(text)).map(Some),
        }
    }

    /// An integer within bounds: `Some(None)` when it is absent, `None` when it is at fault.
    fn integer(&self, name: &str, min: u64, max: u64, faults: &Faults) -> Option<Option<u64>> {
        let Some(text) = self.last(name) else {
            return Some(None);
        };
        // Digits alone: `parse` would take a plus sign too.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok();
        let value = value.filter(|value| digits && (min..=max).contains(value));
        let fault = || match max {
            u64::MAX => format!("must be an integer, {min} or more, not {text:?}"),
            _ => format!("must be an integer, from {min} to {max}, not {text:?}"),
        };
        faults
            .root()
            .member(name)
            .check(value.map(Some).ok_or_else(fault))
    }
}

/// Which part of a list an answer is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// As asked for.
    pub limit: u64,
    /// As asked for.
    pub offset: u64,
    /// Entries of the whole list.
    pub total: u64,
    /// Whether there are entries behind this page.
    pub has_more: bool,
}

impl Pagination {
    /// What the answer says about its page.
    pub fn of<T>(request: PageRequest, page: &Page<T>) -> Self {
        let seen = request.offset.saturating_add(page.entries.len() as u64);
        Self {
            limit: request.limit,
            offset: request.offset,
            total: page.total,
            has_more: seen < page.total,
        }
    }
}
