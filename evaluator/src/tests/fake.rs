//! A fake service of the endpoints that an evaluator uses: it lists, answers and records as in the contract unless its script overrides it,
//! and records every request.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::TcpListener;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The service's limit for most bodies.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A scripted deviation from the contract.
pub enum Script {
    /// Answers with this status.
    Status(u16),
    /// Answers with this status and `Retry-After` in seconds.
    RetryAfter(u16, u64),
    /// Handles the request, but answers with this status.
    DoesThen(u16),
    /// Answers 200 and closes the connection in the middle of the body.
    Breaks,
    /// Answers 200 with this body.
    Says(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Due,
    Query,
    Verdict,
    /// The cycles of a backtest.
    Cycles,
    /// The timeline of a backtest.
    Timeline,
}

/// A request as received.
pub struct Seen {
    pub endpoint: Endpoint,
    pub at: Instant,
    pub query_string: String,
    pub key: String,
    pub body: String,
}

/// The state of the service.
#[derive(Default)]
pub struct World {
    due: Vec<String>,
    rows: HashMap<String, Vec<Value>>,
    page_rows: Option<usize>,
    /// The rule that is tested, as shown beside its cycles.
    tested: Value,
    cycles: Vec<Value>,
    scripts: HashMap<Endpoint, VecDeque<Script>>,
    always: HashMap<Endpoint, u16>,
    pub held: HashSet<Endpoint>,
    forgets_claims: bool,
    claimed: HashSet<String>,
    pub seen: Vec<Seen>,
    /// Outcome and evidence by rule, as recorded.
    pub verdicts: HashMap<String, Value>,
    pub queries_in_work: usize,
    pub queries_in_work_max: usize,
}

impl World {
    pub fn with_due(mut self, entries: impl IntoIterator<Item = Value>) -> Self {
        self.due
            .extend(entries.into_iter().map(|entry| entry.to_string()));
        self
    }

    /// An entry byte for byte.
    pub fn with_due_text(mut self, entry: &str) -> Self {
        self.due.push(entry.to_owned());
        self
    }

    pub fn with_rows(mut self, field: &str, values: Vec<Value>) -> Self {
        self.rows.insert(field.to_owned(), values);
        self
    }

    pub fn with_pages_of(mut self, rows: usize) -> Self {
        self.page_rows = Some(rows);
        self
    }

    /// A rule to test, with its cycles.
    pub fn with_cycles(mut self, tested: Value, cycles: impl IntoIterator<Item = Value>) -> Self {
        self.tested = tested;
        self.cycles.extend(cycles);
        self
    }

    /// Scripts the next answers of an endpoint; later ones follow the contract.
    pub fn with_script(mut self, endpoint: Endpoint, script: impl IntoIterator<Item = Script>) -> Self {
        self.scripts.entry(endpoint).or_default().extend(script);
        self
    }

    /// After its script the endpoint always answers with this status.
    pub fn with_always(mut self, endpoint: Endpoint, status: u16) -> Self {
        self.always.insert(endpoint, status);
        self
    }

    /// The endpoint takes requests and does not answer until it is released.
    pub fn with_held(mut self, endpoint: Endpoint) -> Self {
        self.held.insert(endpoint);
        self
    }

    /// Rules are listed until their verdict is in, claimed or not.
    pub fn with_forgotten_claims(mut self) -> Self {
        self.forgets_claims = true;
        self
    }

    /// Another evaluator's verdict.
    pub fn with_verdict(mut self, rule: &str, outcome: &str) -> Self {
        self.verdicts.insert(rule.to_owned(), json!({"outcome": outcome}));
        self
    }

    pub fn count(&self, endpoint: Endpoint) -> usize {
        self.of(endpoint).count()
    }

    pub fn of(&self, endpoint: Endpoint) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.endpoint == endpoint)
    }

    fn list(&mut self, limit: usize, claims: bool) -> String {
        let mut listed = Vec::new();
        for entry in &self.due {
            let id = serde_json::from_str::<Value>(entry).unwrap()["ruleId"].to_string();
            let id = id.trim_matches('"').to_owned();
            let open = !self.claimed.contains(&id) && !self.verdicts.contains_key(&id);
            if open && listed.len() < limit {
                listed.push(entry.as_str());
                if claims && !self.forgets_claims {
                    self.claimed.insert(id);
                }
            }
        }
        format!(
            r#"{{"count":{},"evaluations":[{}]}}"#,
            listed.len(),
            listed.join(",")
        )
    }

    /// Raw rows go on at a cursor, groups at an offset.
    fn page(&self, query: &Value) -> Value {
        let none = Vec::new();
        let field = query["filters"]["fields"][0].as_str().unwrap();
        let rows = self.rows.get(field).unwrap_or(&none);
        let grouped = query["groupBy"].is_string();
        let from = match (query["cursor"].as_str(), query["offset"].as_u64()) {
            (Some(cursor), None) if !grouped => cursor.parse().unwrap(),
            (None, offset) => offset.unwrap_or(0) as usize,
            _ => panic!("cursor or offset where it does not belong: {query}"),
        };
        let to = rows.len().min(from + self.page_rows.unwrap_or(10_000));
        let data: Vec<Value> = (from..to)
            .map(|row| {
                let mut shown = json!({
                    "timestamp": format!("2026-01-01T{:02}:{:02}:00Z", row / 60, row % 60),
                    "dataSourceId": "d",
                    "values": {field: rows[row]},
                });
                if grouped {
                    shown[field] = rows[row].clone();
                } else {
                    shown["_id"] = json!(format!("{row:024x}"));
                    shown["metadata"] = json!({"row": row});
                }
                shown
            })
            .collect();
        let mut metadata = json!({"count": data.len(), "hasMore": to < rows.len()});
        if to < rows.len() && !grouped {
            metadata["nextCursor"] = json!(to.to_string());
        }
        json!({"data": data, "metadata": metadata})
    }

    fn cycles(&self, body: &Value) -> Value {
        let number = |name: &str| body[name].as_u64().unwrap() as usize;
        let cycles = self.cycles.iter().skip(number("offset")).take(number("limit"));
        let cycles: Vec<_> = cycles.collect();
        json!({"rule": self.tested, "cycles": cycles, "pagination": {"total": self.cycles.len()}})
    }

    /// An entry for each verdict, and the end of a dwell.
    fn timeline(body: &Value) -> Value {
        let verdicts = body["verdicts"].as_array().unwrap();
        let entry = |at: &Value, outcome: &Value, states: [&str; 2]| {
            json!({"at": at, "outcome": outcome, "previousState": states[0], "state": states[1],
                   "triggered": outcome == "met", "accepted": outcome != "inconclusive"})
        };
        let mut entries: Vec<Value> = verdicts
            .iter()
            .map(|verdict| entry(&verdict["at"], &verdict["outcome"], ["armed", "firing"]))
            .collect();
        entries.sort_by_key(|entry| entry["at"].to_string());
        entries.push(entry(
            &json!("2027-01-01T00:00:00Z"),
            &Value::Null,
            ["clearing", "armed"],
        ));
        json!({"timeline": entries})
    }

    fn record(&mut self, rule: &str, verdict: Value) -> (StatusCode, Value) {
        let known = self.due.iter().any(|entry| entry.contains(rule));
        let outcome = verdict["outcome"].clone();
        match (known, self.verdicts.get(rule)) {
            (false, _) => (StatusCode::NOT_FOUND, json!({"message": "no such rule"})),
            (true, Some(recorded)) => (
                StatusCode::CONFLICT,
                json!({"error": "Conflict", "message": "a verdict is recorded already",
                       "evaluation": {"ruleId": rule, "outcome": recorded["outcome"]}}),
            ),
            (true, None) => {
                self.verdicts.insert(rule.to_owned(), verdict);
                (
                    StatusCode::OK,
                    json!({"message": "recorded", "evaluation": {"ruleId": rule, "outcome": outcome,
                           "triggered": outcome == "met"}}),
                )
            }
        }
    }
}

pub struct Fake {
    pub url: String,
    world: Data<watch::Sender<World>>,
    server: ServerHandle,
}

impl Fake {
    pub fn start(world: World) -> Self {
        let world = Data::new(watch::channel(world).0);
        let shared = world.clone();
        let app = move || {
            App::new()
                .app_data(shared.clone())
                .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
                .default_service(web::to(answer))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self {
            url,
            world,
            server: handle,
        }
    }

    pub async fn shut(&self) {
        self.server.stop(false).await;
    }

    pub fn read<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.world.borrow())
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        self.world.send_modify(change);
    }

    /// Waits until the condition holds.
    pub async fn until(&self, holds: impl FnMut(&World) -> bool) {
        self.world.subscribe().wait_for(holds).await.unwrap();
    }

    /// The outcome and evidence recorded for a rule.
    #[track_caller]
    pub fn verdict(&self, rule: &str) -> (String, Value) {
        self.read(|world| {
            let verdict = &world.verdicts[rule];
            (
                verdict["outcome"].as_str().unwrap().to_owned(),
                verdict["evidence"].clone(),
            )
        })
    }

    pub fn outcome(&self, rule: &str) -> String {
        self.verdict(rule).0
    }
}

async fn answer(request: HttpRequest, body: Bytes, world: Data<watch::Sender<World>>) -> HttpResponse {
    let segments: Vec<&str> = request.path().trim_matches('/').split('/').collect();
    let (endpoint, rule) = match (request.method().as_str(), segments.as_slice()) {
        ("GET", ["api", "evaluations", "due"]) => (Endpoint::Due, ""),
        ("POST", ["api", "data", "query"]) => (Endpoint::Query, ""),
        ("POST", ["api", "evaluations", rule, "verdict"]) => (Endpoint::Verdict, *rule),
        ("POST", ["api", "alerts", rule, "backtest"]) => (Endpoint::Cycles, *rule),
        ("POST", ["api", "alerts", rule, "backtest", "verdicts"]) => (Endpoint::Timeline, *rule),
        other => panic!("an evaluator has no use for {other:?}"),
    };
    let header = |name| {
        request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    if endpoint != Endpoint::Due {
        assert_eq!(header("content-type").as_deref(), Some("application/json"));
    }
    let body = String::from_utf8(body.to_vec()).unwrap();
    world.send_modify(|world| {
        world.seen.push(Seen {
            endpoint,
            at: Instant::now(),
            query_string: request.query_string().to_owned(),
            key: header("x-api-key").unwrap_or_default(),
            body: body.clone(),
        });
        if endpoint == Endpoint::Query {
            world.queries_in_work += 1;
            world.queries_in_work_max = world.queries_in_work_max.max(world.queries_in_work);
        }
    });
    world
        .subscribe()
        .wait_for(|world| !world.held.contains(&endpoint))
        .await
        .unwrap();
    let mut response = None;
    world.send_modify(|world| response = Some(respond(world, &request, endpoint, rule, &body)));
    response.unwrap()
}

fn respond(
    world: &mut World,
    request: &HttpRequest,
    endpoint: Endpoint,
    rule: &str,
    body: &str,
) -> HttpResponse {
    if endpoint == Endpoint::Query {
        world.queries_in_work -= 1;
    }
    let error = |status: u16| {
        let status = StatusCode::from_u16(status).unwrap();
        HttpResponse::build(status).body(json!({"message": "as told"}).to_string())
    };
    let always = world.always.get(&endpoint).copied();
    let script = world.scripts.get_mut(&endpoint).and_then(VecDeque::pop_front);
    match script.or(always.map(Script::Status)) {
        None => {}
        Some(Script::Status(status)) => return error(status),
        Some(Script::RetryAfter(status, seconds)) => {
            let mut response = error(status);
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            return response;
        }
        Some(Script::DoesThen(status)) => {
            serve(world, request, endpoint, rule, body);
            return error(status);
        }
        Some(Script::Breaks) => return HttpResponse::Ok().body(Broken),
        Some(Script::Says(body)) => return HttpResponse::Ok().body(body),
    }
    serve(world, request, endpoint, rule, body)
}

fn serve(
    world: &mut World,
    request: &HttpRequest,
    endpoint: Endpoint,
    rule: &str,
    body: &str,
) -> HttpResponse {
    let json = |status: StatusCode, body: String| HttpResponse::build(status).body(body);
    match endpoint {
        Endpoint::Due => {
            let parameters: HashMap<&str, u64> = request
                .query_string()
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name, value.parse().unwrap()))
                .collect();
            let limit = parameters.get("limit").map_or(100, |limit| *limit as usize);
            json(
                StatusCode::OK,
                world.list(limit, parameters.contains_key("claim")),
            )
        }
        Endpoint::Query => {
            let page = world.page(&serde_json::from_str(body).unwrap());
            json(StatusCode::OK, page.to_string())
        }
        Endpoint::Cycles => {
            let page = world.cycles(&serde_json::from_str(body).unwrap());
            json(StatusCode::OK, page.to_string())
        }
        Endpoint::Timeline => {
            let timeline = World::timeline(&serde_json::from_str(body).unwrap());
            json(StatusCode::OK, timeline.to_string())
        }
        Endpoint::Verdict => {
            let (status, answer) = world.record(rule, serde_json::from_str(body).unwrap());
            json(status, answer.to_string())
        }
    }
}

/// Announces a hundred bytes and sends none.
struct Broken;

impl MessageBody for Broken {
    type Error = std::io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(100)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(Some(Err(std::io::Error::other("as told"))))
    }
}
