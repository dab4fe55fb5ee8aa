//! `/prometheus/api/v1/…`: the HTTP API that Grafana asks Prometheus by (contract 16), GET and POST.
//!
//! What is wrong with the question is told as Prometheus tells it; everything else (401, 403, 404, 429) as elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse};
use promql::json::{TRUNCATED, write_error, write_labels, write_success};
use promql::{Error, Matcher, Options, Query, STEPS_MAX, TimeRange, params};
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::http::body;
use crate::http::endpoint::{
    AgentReader, BucketInPath, BucketParam, Call, Components, DimensionName, Endpoint, Params, RequestBody,
    get, post,
};
use crate::http::respond;
use crate::http::shape::Faults;
use crate::limits::BODY_BYTES_MAX;
use crate::service::ShardService;
use crate::service::data::BucketName;
use crate::service::prometheus::{Found, Question};

/// The version of Prometheus whose answers these are; Grafana offers what it has.
const PROMETHEUS_VERSION: &str = "3.5.0";

/// Both paths of a route, both methods.
macro_rules! routes {
    ($($path:literal $id:literal $handler:ident;)*) => {
        vec![$(
            get(concat!("/prometheus/api/v1/", $path), $id, $handler::<BucketParam, false>),
            post(concat!("/prometheus/api/v1/", $path), concat!($id, "ByForm"), $handler::<BucketParam, true>).only_reads(),
            get(
                concat!("/prometheus/{bucket}/api/v1/", $path),
                concat!($id, "OfBucket"),
                $handler::<BucketInPath, false>,
            ),
            post(
                concat!("/prometheus/{bucket}/api/v1/", $path),
                concat!($id, "ByFormOfBucket"),
                $handler::<BucketInPath, true>,
            ).only_reads(),
        )*]
    };
}

pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = routes! {
        "query" "promqlQuery" query;
        "query_range" "promqlQueryRange" query_range;
        "labels" "promqlLabels" labels;
        "series" "promqlSeries" series;
        "metadata" "promqlMetadata" metadata;
        "status/buildinfo" "promqlBuildinfo" build_info;
    };
    endpoints.extend([
        get(
            "/prometheus/api/v1/label/{name}/values",
            "promqlLabelValues",
            label_values::<BucketParam, false>,
        ),
        post(
            "/prometheus/api/v1/label/{name}/values",
            "promqlLabelValuesByForm",
            label_values::<BucketParam, true>,
        )
        .only_reads(),
        get(
            "/prometheus/{bucket}/api/v1/label/{name}/values",
            "promqlLabelValuesOfBucket",
            label_values::<BucketInPath, false>,
        ),
        post(
            "/prometheus/{bucket}/api/v1/label/{name}/values",
            "promqlLabelValuesByFormOfBucket",
            label_values::<BucketInPath, true>,
        )
        .only_reads(),
    ]);
    endpoints
}

/// How a route finds its bucket.
trait NamesBucket: Params + 'static {
    fn name<const BY_FORM: bool>(&self, asked: &Asked<BY_FORM>) -> BucketName;
}

impl NamesBucket for BucketParam {
    /// The parameters of the form are before those of the query string, and these before the header.
    fn name<const BY_FORM: bool>(&self, asked: &Asked<BY_FORM>) -> BucketName {
        let of_form = &asked.pairs[..asked.of_form];
        let last = |name: &str| {
            let found = of_form.iter().rev().find(|(of, _)| of == name);
            found.map(|(_, value)| value.as_str())
        };
        match Self::among(last) {
            Some(named) => BucketName(Some(named.to_owned())),
            None => self.0.clone(),
        }
    }
}

impl NamesBucket for BucketInPath {
    fn name<const BY_FORM: bool>(&self, _: &Asked<BY_FORM>) -> BucketName {
        self.0.clone()
    }
}

/// The parameters of a question: those of the form, if it is a POST, before those of the query string.
struct Asked<const BY_FORM: bool> {
    pairs: Vec<(String, String)>,
    /// Number of those of the form.
    of_form: usize,
}

impl<const BY_FORM: bool> RequestBody<ShardService> for Asked<BY_FORM> {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        _: &ShardService,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let mut form = Bytes::new();
        if BY_FORM {
            form = body::read(Ok(()), request, payload, BODY_BYTES_MAX)
                .await?
                .bytes();
        }
        let of_form = url::form_urlencoded::parse(&form);
        let of_url = url::form_urlencoded::parse(request.query_string().as_bytes());
        let mut pairs: Vec<_> = of_form.map(into_owned).collect();
        let of_form = pairs.len();
        pairs.extend(of_url.map(into_owned));
        Ok(Some(Self { pairs, of_form }))
    }

    fn describe(_: &mut Components) -> Option<Value> {
        BY_FORM.then(|| json!({"required": false, "content": {"application/x-www-form-urlencoded": {}}}))
    }
}

fn into_owned((name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)) -> (String, String) {
    (name.into_owned(), value.into_owned())
}

impl<const BY_FORM: bool> Asked<BY_FORM> {
    /// The first value of a parameter, unless it is empty.
    fn text(&self, name: &str) -> Option<&str> {
        let of_name = self.pairs.iter().find(|(of, _)| of == name);
        of_name
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn read<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, Error>) -> Result<Option<T>, Error> {
        let read = |text| read(text).map_err(|error| invalid(name, &error.message));
        self.text(name).map(read).transpose()
    }

    fn needed<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
        self.read(name, read)?.ok_or_else(|| invalid(name, "is missing"))
    }

    fn query(&self) -> Result<Query, Error> {
        let mut options = Options::default();
        if let Some(lookback_ms) = self
            .read("lookback_delta", params::duration_ms)?
            .filter(|ms| *ms > 0)
        {
            options.lookback_ms = lookback_ms;
        }
        Query::parse(self.text("query").unwrap_or_default(), options)
    }

    fn timeout(&self) -> Result<Option<Duration>, Error> {
        let timeout_ms = self.read("timeout", params::duration_ms)?;
        Ok(timeout_ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs())))
    }

    fn selectors(&self) -> Result<Vec<Vec<Matcher>>, Error> {
        let texts = self.pairs.iter().filter(|(name, _)| name == "match[]");
        let read = |(name, text): &(String, String)| {
            params::selector(text).map_err(|error| invalid(name, &error.message))
        };
        texts.map(read).collect()
    }

    /// The time of the series that are asked for; all of it if nothing is said.
    fn range(&self) -> Result<TimeRange, Error> {
        let start_ms = self.read("start", params::time_ms)?.unwrap_or(i64::MIN + 1);
        let end_ms = self.read("end", params::time_ms)?.unwrap_or(i64::MAX);
        if end_ms < start_ms {
            return Err(invalid("end", "must not be before start"));
        }
        Ok(TimeRange {
            after_ms: start_ms - 1,
            until_ms: end_ms,
        })
    }

    /// The greatest number of entries in the answer.
    fn limit(&self) -> Result<usize, Error> {
        let read = |text: &str| {
            text.parse::<usize>()
                .map_err(|_| Error::bad_data("must be a number of entries"))
        };
        Ok(self
            .read("limit", read)?
            .filter(|limit| *limit > 0)
            .unwrap_or(usize::MAX))
    }
}

fn invalid(name: &str, reason: &str) -> Error {
    Error::bad_data(format!("invalid parameter {name:?}: {reason}"))
}

type Asking<P, const BY_FORM: bool> = Call<AgentReader, P, Asked<BY_FORM>>;

async fn query<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let now_ms = call.service.now_ns().div_euclid(1_000_000);
    let name = call.params.name(&call.body);
    answer(call, &name, |asked| {
        let at_ms = asked.read("time", params::time_ms)?.unwrap_or(now_ms);
        let query = asked.query()?;
        Ok(Question::Instant { query, at_ms })
    })
    .await
}

async fn query_range<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let name = call.params.name(&call.body);
    answer(call, &name, |asked| {
        let start_ms = asked.needed("start", params::time_ms)?;
        let end_ms = asked.needed("end", params::time_ms)?;
        let step_ms = asked.needed("step", params::duration_ms)?;
        if end_ms < start_ms {
            return Err(invalid("end", "must not be before start"));
        }
        if step_ms <= 0 {
            return Err(invalid("step", "must be greater than 0"));
        }
        if end_ms.saturating_sub(start_ms) / step_ms > STEPS_MAX {
            let reason =
                format!("there are more than {STEPS_MAX} steps; make it longer, or the range shorter");
            return Err(invalid("step", &reason));
        }
        Ok(Question::Range {
            query: asked.query()?,
            start_ms,
            end_ms,
            step_ms,
        })
    })
    .await
}

async fn labels<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let name = call.params.name(&call.body);
    answer(call, &name, |asked| {
        Ok(Question::LabelNames {
            selectors: asked.selectors()?,
            range: asked.range()?,
        })
    })
    .await
}

async fn label_values<P: NamesBucket, const BY_FORM: bool>(
    call: Call<AgentReader, (P, DimensionName), Asked<BY_FORM>>,
) -> Result<HttpResponse, ServiceError> {
    let (bucket, DimensionName(label)) = &call.params;
    let (bucket, label) = (bucket.name(&call.body), label.clone());
    answer(call, &bucket, |asked| {
        Ok(Question::LabelValues {
            name: label,
            selectors: asked.selectors()?,
            range: asked.range()?,
        })
    })
    .await
}

async fn series<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let name = call.params.name(&call.body);
    answer(call, &name, |asked| {
        let selectors = asked.selectors()?;
        if selectors.is_empty() {
            return Err(Error::bad_data(
                "no match[] parameter: give at least one selector",
            ));
        }
        Ok(Question::Series {
            selectors,
            range: asked.range()?,
        })
    })
    .await
}

async fn metadata<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let name = call.params.name(&call.body);
    answer(call, &name, |asked| {
        Ok(Question::Metadata {
            metric: asked.text("metric").map(str::to_owned),
            limit: asked.limit()?,
        })
    })
    .await
}

async fn build_info<P: NamesBucket, const BY_FORM: bool>(
    call: Asking<P, BY_FORM>,
) -> Result<HttpResponse, ServiceError> {
    let data = json!({
        "version": PROMETHEUS_VERSION,
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    });
    let body = json!({"status": "success", "data": data})
        .to_string()
        .into_bytes();
    respond::respond(&call.request, StatusCode::OK, body).await
}

/// Answers the question that the parameters ask.
async fn answer<P: Params, const BY_FORM: bool>(
    call: Call<AgentReader, P, Asked<BY_FORM>>,
    bucket: &BucketName,
    read: impl FnOnce(&Asked<BY_FORM>) -> Result<Question, Error>,
) -> Result<HttpResponse, ServiceError> {
    let bucket = call.service.named_bucket(&call.caller, bucket)?;
    let asked = &call.body;
    let read = || Ok((read(asked)?, asked.timeout()?, asked.limit()?));
    let answered = match read() {
        Ok((question, timeout, limit)) => {
            let write = move |found: &Found| written(found, limit);
            call.service
                .ask(&call.caller, bucket, question, timeout, write)
                .await?
        }
        Err(error) => Err(error),
    };
    let (status, body) = match answered {
        Ok(body) => (StatusCode::OK, body),
        Err(error) => {
            let status =
                StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut body = Vec::new();
            write_error(&error, &mut body);
            (status, body)
        }
    };
    respond::respond(&call.request, status, body).await
}

fn written(found: &Found, limit: usize) -> Vec<u8> {
    let mut out = Vec::new();
    match found {
        Found::Value(value) => write_success(value, limit, &mut out),
        Found::Series(series) => write_entries(series.iter(), limit, &mut out, write_labels),
        Found::Texts(texts) => write_entries(texts.iter(), limit, &mut out, |text, out| {
            promql::json::write_string(text, out);
        }),
        Found::Metadata(metrics) => {
            let of_metric = |(name, known): (&String, &std::collections::BTreeSet<_>)| {
                let known: Vec<Value> = known.iter().map(of_metadata).collect();
                (name.clone(), known)
            };
            let metrics: BTreeMap<String, Vec<Value>> = metrics.iter().map(of_metric).collect();
            out = json!({"status": "success", "data": metrics})
                .to_string()
                .into_bytes();
        }
    }
    out
}

fn of_metadata(known: &crate::service::prometheus::MetricMetadata) -> Value {
    json!({"type": known.metric_type, "help": known.help, "unit": known.unit})
}

fn write_entries<T>(
    entries: impl ExactSizeIterator<Item = T>,
    limit: usize,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    let is_truncated = entries.len() > limit;
    out.extend_from_slice(br#"{"status":"success","data":["#);
    for (index, entry) in entries.take(limit).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(entry, out);
    }
    out.push(b']');
    if is_truncated {
        out.extend_from_slice(TRUNCATED);
    }
    out.push(b'}');
}
