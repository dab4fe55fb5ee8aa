//! Clients that use a cluster through changing nodes until they are stopped, and record what they are answered.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Client, Request};
use crate::given::text;
use crate::receiver::{Receiver, status};
use crate::record::{Outcome, POINTS_OF_A_TIME, Read, Span, Verdict, Write, time_of};
use crate::tenant::{Rule, Tenant, rows};
use crate::world::World;

pub const CLIENTS: usize = 6;
const TENANTS: usize = 4;

/// Pause of a client between two requests: two busy cores are to do more than HTTP.
const PAUSE: Duration = Duration::from_millis(4);
/// Points of a batch.
const BATCH: std::ops::Range<u64> = 2..24;
/// Attempts at a request that may be repeated.
const ATTEMPTS_MAX: usize = 4;
/// Points that a read asks for.
const READ_POINTS: u64 = 240;
/// Verdicts that are posted for a rule.
const VERDICTS_MAX: usize = 3;
/// Rules and keys of an organization: each costs the audit a request.
const OBJECTS_MAX: usize = 24;

/// The path to which the rules' own deliveries go.
pub const RECEIVER_PATH: &str = "/rules";

pub struct Load {
    pub tenants: Vec<Tenant>,
    /// One for each node.
    pub clients: Vec<Client>,
    /// The nodes that are used, unless there is none.
    rotation: Mutex<Vec<usize>>,
    pub receiver: Receiver,
    /// Bytes of text in each point.
    pub ballast: AtomicUsize,
    began: Instant,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
    pub acknowledged: AtomicU64,
    /// Writes that were sent again and found to be carried out already.
    pub replayed: AtomicU64,
    /// Every request, in the order of the answers.
    pub calls: Mutex<Vec<Call>>,
}

/// A request of a client, for the figures.
#[derive(Clone, Debug)]
pub struct Call {
    pub shard: u16,
    pub node: usize,
    pub span: Span,
    /// `None` without an answer.
    pub status: Option<u16>,
    /// The answer if it was no success, or why there is none.
    pub text: String,
}

impl Call {
    pub fn is_ok(&self) -> bool {
        self.status.is_some_and(|status| status < 300)
    }
}

/// Stops the clients when it goes out of scope, also by a panic.
pub struct Stop<'a>(pub &'a Load);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if let Ok(mut is_stopped) = self.0.is_stopped.lock() {
            *is_stopped = true;
        }
        self.0.stopped.notify_all();
    }
}

impl Load {
    /// New organizations, made through all nodes.
    pub fn new(world: &World) -> Self {
        Self::with_tenants(world, TENANTS)
    }

    /// The same with so many organizations.
    pub fn with_tenants(world: &World, count: usize) -> Self {
        let servers = world.nodes.iter().map(|node| &node.server.client).cycle();
        let tenants = servers.take(count).map(|client| Tenant::sign_up(world, client));
        let tenants: Vec<Tenant> = tenants.collect();
        for tenant in &tenants {
            assert_eq!(
                tenant.bucket.query(&json!({}))["data"],
                json!([]),
                "a new bucket is empty"
            );
        }
        Load {
            tenants,
            clients: world.nodes.iter().map(|node| node.client.clone()).collect(),
            rotation: Mutex::new((0..world.nodes.len()).collect()),
            receiver: Receiver::answering(|_, _| status(200)),
            ballast: AtomicUsize::new(0),
            began: Instant::now(),
            is_stopped: Mutex::new(false),
            stopped: Condvar::new(),
            acknowledged: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            calls: Mutex::default(),
        }
    }

    /// Time on the clock of the records.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Runs one client until it is stopped.
    pub fn run(&self, mut random: fastrand::Rng) {
        while !self.pause() {
            let tenant = &self.tenants[random.usize(..self.tenants.len())];
            match random.u8(..100) {
                0..50 => self.write(tenant, &mut random),
                50..75 => self.read(tenant, &mut random),
                75..92 => self.use_key(tenant, &mut random),
                _ => self.use_rule(tenant, &mut random),
            }
        }
    }

    /// Waits a moment; returns whether the clients are stopped.
    pub fn pause(&self) -> bool {
        let is_stopped = self.is_stopped.lock().unwrap();
        *self.stopped.wait_timeout(is_stopped, PAUSE).unwrap().0
    }

    /// Has clients use these nodes only, as behind a load balancer.
    pub fn use_nodes(&self, nodes: Vec<usize>) {
        *self.rotation.lock().unwrap() = nodes;
    }

    /// A node that is used.
    fn node(&self, random: &mut fastrand::Rng) -> usize {
        let nodes = self.rotation.lock().unwrap();
        match nodes.len() {
            0 => random.usize(..self.clients.len()),
            count => nodes[random.usize(..count)],
        }
    }

    fn is_stopped(&self) -> bool {
        *self.is_stopped.lock().unwrap()
    }

    /// Sends a request to any node. The answer is `None` if its outcome is not known.
    fn send<'a>(
        &'a self,
        tenant: &Tenant,
        random: &mut fastrand::Rng,
        request: impl FnOnce(&'a Client) -> Request<'a>,
    ) -> (Span, Option<Answer>) {
        let node = self.node(random);
        let began = self.now();
        let answer = request(&self.clients[node]).try_send();
        let span = Span {
            began,
            ended: self.now(),
        };
        let text = match &answer {
            Ok(answer) if answer.status >= 300 => answer.to_string(),
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let status = answer.as_ref().ok().map(|answer| answer.status);
        let call = Call {
            shard: tenant.shard,
            node,
            span,
            status,
            text,
        };
        if call.is_ok() {
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        self.calls.lock().unwrap().push(call);
        (span, answer.ok().filter(|answer| answer.status != 503))
    }

    fn write(&self, tenant: &Tenant, random: &mut fastrand::Rng) {
        let is_batch = random.bool();
        let count = if is_batch { random.u64(BATCH) } else { 1 };
        let numbers = tenant.take_numbers(count);
        let key = random.bool().then(|| format!("points {}", numbers.start));
        let path = if is_batch { "/api/data/batch" } else { "/api/data" };
        let ballast = self.ballast.load(Ordering::SeqCst);
        let body = tenant.points(numbers.clone(), is_batch, ballast).to_string();
        let mut write = Write {
            numbers,
            span: Span {
                began: self.now(),
                ended: u64::MAX,
            },
            outcome: Outcome::Unknown,
            copies_max: 1,
        };
        for attempt in 1..=ATTEMPTS_MAX {
            let (span, answer) = self.send(tenant, random, |client| {
                let request = client.post(path).key(&tenant.bucket.admin);
                let request = request.body(body.as_str());
                match &key {
                    Some(key) => request.header("Idempotency-Key", key.as_str()),
                    None => request,
                }
            });
            if let Some(answer) = answer {
                match answer.status {
                    201 => {
                        write.outcome = Outcome::Acknowledged;
                        write.span.ended = span.ended;
                        let is_replay = answer.header("idempotent-replayed").is_some();
                        self.replayed.fetch_add(u64::from(is_replay), Ordering::SeqCst);
                    }
                    _ => unexpected(tenant, &answer),
                }
                break;
            }
            // Without a key, what is sent again may count again.
            let is_sent_again = attempt < ATTEMPTS_MAX && (key.is_some() || random.u8(..4) == 0);
            if !is_sent_again || self.is_stopped() {
                break;
            }
            write.copies_max += usize::from(key.is_none());
        }
        tenant.writes.lock().unwrap().push(write);
    }

    fn read(&self, tenant: &Tenant, random: &mut fastrand::Rng) {
        let next = tenant.next.load(Ordering::SeqCst);
        let end = next - random.u64(..=next.min(READ_POINTS));
        let (first, last) = (time_of(end.saturating_sub(READ_POINTS)), time_of(end));
        if first == last {
            return;
        }
        let body = json!({
            "bucketId": tenant.bucket.id, "limit": 10_000, "downsampling": false,
            "filters": {"startTime": tenant.timestamp(first), "endTime": tenant.timestamp(last)},
        });
        let (span, answer) = self.send(tenant, random, |client| {
            client
                .post("/api/data/query")
                .key(&tenant.bucket.admin)
                .json(&body)
        });
        match answer {
            Some(answer) if answer.status == 200 => tenant.reads.lock().unwrap().push(Read {
                numbers: first * POINTS_OF_A_TIME..(last + 1) * POINTS_OF_A_TIME,
                span,
                rows: rows(&answer.json()),
                is_last: false,
            }),
            Some(answer) => unexpected(tenant, &answer),
            None => {}
        }
    }

    /// Makes a key, uses one, or deletes one.
    fn use_key(&self, tenant: &Tenant, random: &mut fastrand::Rng) {
        let path = format!("/api/buckets/{}/keys", tenant.bucket.id);
        let (count, chosen) = {
            let keys = tenant.keys.lock().unwrap();
            let known = keys.iter().enumerate().filter(|(_, key)| key.known.is_some());
            let known: Vec<usize> = known.map(|(index, _)| index).collect();
            let chosen = (!known.is_empty()).then(|| known[random.usize(..known.len())]);
            let chosen = chosen.and_then(|index| Some((index, keys[index].known.clone()?)));
            (keys.len(), chosen)
        };
        match (random.u8(..10), chosen) {
            (0..3, _) | (_, None) if count < OBJECTS_MAX => {
                let began = self.now();
                let name = format!("key {}", random.u64(..));
                let body = json!({"name": name, "type": "read"});
                let span = Span {
                    began,
                    ended: u64::MAX,
                };
                let index = tenant.add_key(name, span);
                let (span, answer) = self.send(tenant, random, |client| {
                    client.post(&path).key(&tenant.bucket.admin).json(&body)
                });
                match answer {
                    Some(answer) if answer.status == 201 => {
                        let answer = answer.json();
                        let known = (text(&answer, "/apiKey/_id"), text(&answer, "/apiKey/key"));
                        let mut keys = tenant.keys.lock().unwrap();
                        keys[index].known = Some(known);
                        keys[index].life.creation = (span, Outcome::Acknowledged);
                    }
                    Some(answer) => unexpected(tenant, &answer),
                    None => {}
                }
            }
            (9, Some((index, (id, _)))) => {
                let span = Span {
                    began: self.now(),
                    ended: u64::MAX,
                };
                {
                    let deletion = &mut tenant.keys.lock().unwrap()[index].life.deletion;
                    if deletion.is_some() {
                        return;
                    }
                    *deletion = Some((span, Outcome::Unknown));
                }
                self.delete_key(tenant, random, &format!("{path}/{id}"), index);
            }
            (_, Some((index, (_, key)))) => {
                let body = json!({"bucketId": tenant.bucket.id, "limit": 1});
                let (span, answer) = self.send(tenant, random, |client| {
                    client.post("/api/data/query").key(&key).json(&body)
                });
                match answer {
                    Some(answer) if matches!(answer.status, 200 | 401) => {
                        let mut keys = tenant.keys.lock().unwrap();
                        keys[index].life.uses.push((span, answer.status == 200));
                    }
                    Some(answer) => unexpected(tenant, &answer),
                    None => {}
                }
            }
            (_, None) => {}
        }
    }

    fn delete_key(&self, tenant: &Tenant, random: &mut fastrand::Rng, path: &str, index: usize) {
        let (span, answer) = self.send(tenant, random, |client| {
            client.delete(path).key(&tenant.bucket.admin)
        });
        match answer {
            Some(answer) if answer.status == 200 => {
                let deletion = Some((span, Outcome::Acknowledged));
                tenant.keys.lock().unwrap()[index].life.deletion = deletion;
            }
            Some(answer) => unexpected(tenant, &answer),
            None => {}
        }
    }

    /// Makes a rule, posts a verdict for one, or lists those that are due.
    fn use_rule(&self, tenant: &Tenant, random: &mut fastrand::Rng) {
        if random.u8(..3) == 0 {
            return self.list_due(tenant, random);
        }
        let (count, chosen) = {
            let mut rules = tenant.rules.lock().unwrap();
            let count = rules.len();
            let open = rules.iter_mut().enumerate();
            let mut open: Vec<(usize, &mut Rule)> = open
                .filter(|(_, rule)| rule.id.is_some() && rule.to_post > 0)
                .collect();
            let chosen = (!open.is_empty()).then(|| random.usize(..open.len()));
            let chosen = chosen.and_then(|chosen| {
                let (index, rule) = &mut open[chosen];
                rule.to_post -= 1;
                Some((*index, rule.id.clone()?))
            });
            (count, chosen)
        };
        match chosen {
            Some((index, id)) => {
                let verdict = self.post_verdict(tenant, &id, random);
                tenant.rules.lock().unwrap()[index].verdicts.push(verdict);
            }
            None if count < OBJECTS_MAX => drop(self.make_rule(tenant, VERDICTS_MAX, random)),
            None => {}
        }
    }

    /// Makes a rule, which is due at once and then not for a day, and for which clients post so many verdicts. Returns its
    /// place and its id, if it is acknowledged.
    pub fn make_rule(
        &self,
        tenant: &Tenant,
        verdicts: usize,
        random: &mut fastrand::Rng,
    ) -> Option<(usize, String)> {
        let name = format!("rule {}", random.u64(..));
        let body = json!({
            "bucketId": tenant.bucket.id, "dataSourceId": tenant.source, "name": name,
            "naturalLanguageQuery": "level is above 5", "webhookUrl": self.receiver.url(RECEIVER_PATH),
            "evaluation": {
                "intervalSeconds": 86_400, "windowSeconds": 300, "inputs": [{"key": "x", "field": "level"}],
                "parameters": {},
            },
        });
        let mut rule = Rule {
            id: None,
            name,
            creation: (
                Span {
                    began: self.now(),
                    ended: u64::MAX,
                },
                Outcome::Unknown,
            ),
            verdicts: Vec::new(),
            due: Vec::new(),
            to_post: verdicts,
        };
        let (span, answer) = self.send(tenant, random, |client| {
            client.post("/api/alerts").key(&tenant.bucket.admin).json(&body)
        });
        match answer {
            Some(answer) if answer.status == 201 => {
                rule.id = Some(text(&answer.json(), "/alertRule/_id"));
                rule.creation = (span, Outcome::Acknowledged);
            }
            Some(answer) => unexpected(tenant, &answer),
            None => {}
        }
        let id = rule.id.clone();
        let mut rules = tenant.rules.lock().unwrap();
        rules.push(rule);
        Some((rules.len() - 1, id?))
    }

    /// Lists the rules that are due.
    fn list_due(&self, tenant: &Tenant, random: &mut fastrand::Rng) {
        let (span, answer) = self.send(tenant, random, |client| {
            client
                .get("/api/evaluations/due?limit=1000")
                .key(&tenant.evaluator)
        });
        match answer {
            Some(answer) if answer.status == 200 => {
                let listed = answer.json();
                let is_listed = |id: &String| {
                    let mut listed = listed["evaluations"].as_array().into_iter().flatten();
                    listed.any(|due| due["ruleId"] == id.as_str())
                };
                for rule in tenant.rules.lock().unwrap().iter_mut() {
                    let listed = rule.id.as_ref().map(is_listed);
                    rule.due.extend(listed.map(|is_listed| (span, is_listed)));
                }
            }
            Some(answer) => unexpected(tenant, &answer),
            None => {}
        }
    }

    /// Posts a verdict through any node.
    pub fn post_verdict(&self, tenant: &Tenant, rule: &str, random: &mut fastrand::Rng) -> (Span, Verdict) {
        let outcome = ["met", "not_met"][random.usize(..2)];
        let path = format!("/api/evaluations/{rule}/verdict");
        let body = json!({"outcome": outcome, "evidence": {"currentValue": 1}});
        let (span, answer) = self.send(tenant, random, |client| {
            client.post(&path).key(&tenant.evaluator).json(&body)
        });
        let Some(answer) = answer else {
            return (span, Verdict::Unknown);
        };
        let recorded = |answer: &Answer| {
            let body: Value = answer.json();
            body["evaluation"]["outcome"].as_str().map(str::to_owned)
        };
        let verdict = match answer.status {
            200 => Verdict::Accepted(recorded(&answer).unwrap_or_default()),
            409 => Verdict::Refused(recorded(&answer)),
            _ => {
                unexpected(tenant, &answer);
                Verdict::Unknown
            }
        };
        (span, verdict)
    }
}

/// Notes an answer that no fault explains.
fn unexpected(tenant: &Tenant, answer: &Answer) {
    tenant.unexpected.lock().unwrap().push(answer.to_string());
}
