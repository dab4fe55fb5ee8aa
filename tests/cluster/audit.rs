//! Reads everything that is there after the faults, through all nodes, and has it checked.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checker::{Fault, Kind, check};
use crate::client::{Client, Request};
use crate::load::{Load, RECEIVER_PATH};
use crate::receiver::Received;
use crate::record::{History, KeyLife, Read, Row, RuleLife, Span};
use crate::tenant::{Tenant, rows};

/// Most keys and rules of an organization.
const LISTED_MAX: usize = 1_000;

/// All faults of a load that has ended, organization by organization. `within` is how long each request is tried again.
pub fn audit<'a>(
    load: &'a Load,
    clients: &'a [Client],
    within: Duration,
) -> impl Iterator<Item = Fault> + 'a {
    let audit = Audit {
        load,
        clients,
        within,
    };
    load.tenants.iter().flat_map(move |tenant| {
        let mut history = audit.recorded(tenant);
        match audit.complete(tenant, &mut history) {
            Ok(()) => check(&history),
            // The rest would be missing, too.
            Err(unanswered) => vec![Fault {
                kind: Kind::Unexpected,
                what: format!("organization of {}: {unanswered}", tenant.email),
            }],
        }
    })
}

struct Audit<'a> {
    load: &'a Load,
    clients: &'a [Client],
    within: Duration,
}

impl Audit<'_> {
    /// What clients have recorded.
    fn recorded(&self, tenant: &Tenant) -> History {
        let keys = tenant.keys.lock().unwrap();
        let rules = tenant.rules.lock().unwrap();
        History {
            writes: tenant.writes.lock().unwrap().clone(),
            reads: tenant.reads.lock().unwrap().clone(),
            keys: keys.iter().map(|key| key.life.clone()).collect(),
            rules: rules.iter().map(|rule| rule.life()).collect(),
            unexpected: tenant.unexpected.lock().unwrap().clone(),
        }
    }

    /// Adds what is there. The error says what could not be read.
    fn complete(&self, tenant: &Tenant, history: &mut History) -> Result<(), String> {
        history.reads.push(self.points(tenant)?);
        self.keys(tenant, &mut history.keys)?;
        self.rules(tenant, &mut history.rules)
    }

    /// The answer to a request, which any node is to give.
    fn ask<'a>(&'a self, request: impl Fn(&'a Client) -> Request<'a>) -> Result<Value, String> {
        let mut last = String::new();
        let mut clients = self.clients.iter().cycle();
        let deadline = Instant::now() + self.within;
        loop {
            match clients.next().map(|client| request(client).try_send()) {
                Some(Ok(answer)) if answer.status == 200 => return Ok(answer.json()),
                Some(Ok(answer)) => last = answer.to_string(),
                Some(Err(error)) => last = error.to_string(),
                None => {}
            }
            if Instant::now() > deadline {
                return Err(format!("not answered within {:?}: {last}", self.within));
            }
            self.load.pause();
        }
    }

    fn points(&self, tenant: &Tenant) -> Result<Read, String> {
        let began = self.load.now();
        let mut body = json!({"bucketId": tenant.bucket.id, "limit": 10_000, "downsampling": false});
        let mut shown: Vec<Row> = Vec::new();
        loop {
            let mut answer = self.ask(|client| {
                client
                    .post("/api/data/query")
                    .key(&tenant.bucket.admin)
                    .json(&body)
            })?;
            shown.extend(rows(&answer));
            if answer["metadata"]["hasMore"] == false {
                break;
            }
            body["cursor"] = answer["metadata"]["nextCursor"].take();
        }
        Ok(Read {
            numbers: 0..tenant.next.load(Ordering::SeqCst),
            span: Span {
                began,
                ended: self.load.now(),
            },
            rows: shown,
            is_last: true,
        })
    }

    /// The objects of a list, by name.
    fn listed(
        &self,
        tenant: &Tenant,
        of: &str,
        member: &str,
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let path = format!("/api/buckets/{}/{of}?limit={LISTED_MAX}", tenant.bucket.id);
        let answer = self.ask(|client| client.get(&path).key(&tenant.bucket.admin))?;
        let mut listed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in answer[member].as_array().into_iter().flatten() {
            let [name, id] = ["name", "_id"].map(|of| object[of].as_str().unwrap_or("?").to_owned());
            listed.entry(name).or_default().push(id);
        }
        Ok(listed)
    }

    fn keys(&self, tenant: &Tenant, keys: &mut [KeyLife]) -> Result<(), String> {
        let listed = self.listed(tenant, "keys", "apiKeys")?;
        for key in keys {
            key.listed = listed.get(&key.name).map_or(0, Vec::len);
        }
        Ok(())
    }

    fn rules(&self, tenant: &Tenant, rules: &mut [RuleLife]) -> Result<(), String> {
        let listed = self.listed(tenant, "alerts", "alertRules")?;
        for rule in rules {
            let ids = listed.get(&rule.name).map_or(&[][..], Vec::as_slice);
            rule.listed = ids.len();
            for id in ids {
                self.rule(tenant, id, rule)?;
            }
        }
        Ok(())
    }

    fn rule(&self, tenant: &Tenant, id: &str, rule: &mut RuleLife) -> Result<(), String> {
        let path = format!("/api/alerts/{id}/history?limit={LISTED_MAX}");
        let answer = self.ask(|client| client.get(&path).key(&tenant.bucket.admin))?;
        for entry in answer["history"].as_array().into_iter().flatten() {
            match entry["kind"].as_str() {
                Some("verdict") => {
                    let outcome = entry["outcome"].as_str().unwrap_or("?");
                    rule.history.push(outcome.to_owned());
                }
                _ => rule.triggers += 1,
            }
        }
        if rule.triggers > 0 {
            // Deliveries are made after the answer, and go on after a kill.
            let what = format!("a delivery of rule {id}");
            self.load.receiver.wait_for(&what, |received| {
                received.iter().any(|request| is_of(request, id))
            });
        }
        let received = self.load.receiver.received(RECEIVER_PATH);
        let ids = received.iter().filter(|request| is_of(request, id));
        let ids = ids.filter_map(|request| request.header("x-webhook-id").map(str::to_owned));
        rule.deliveries.extend(ids);
        Ok(())
    }
}

fn is_of(request: &Received, rule: &str) -> bool {
    request.json()["alertId"] == rule
}
