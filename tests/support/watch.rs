//! Preconditions of tests about rules: an integration key, a rule with an evaluation block, webhooks, and an evaluator
//! that lists due rules and posts verdicts.

use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::given::{Account, Bucket, text};

/// The least interval of a rule.
pub const INTERVAL_SECONDS: i64 = 60;

/// An evaluation block with the least interval over one field.
pub fn evaluation(field: &str) -> Value {
    json!({
        "intervalSeconds": INTERVAL_SECONDS, "windowSeconds": 300, "inputs": [{"key": "x", "field": field}],
        "parameters": {},
    })
}

impl Account {
    /// An evaluator with a new integration key of this organization.
    #[track_caller]
    pub fn evaluator(&self) -> Evaluator {
        let request = self.client.post("/api/organization/keys").bearer(&self.token);
        let answer = request
            .json(&json!({"name": "evaluator", "type": "integration"}))
            .send();
        let answer = answer.expect(201, "contract 2: a bearer creates integration keys");
        Evaluator {
            client: self.client.clone(),
            key: text(&answer, "/apiKey/key"),
        }
    }

    /// Creates a webhook; returns it with its secret.
    #[track_caller]
    pub fn webhook(&self, body: &Value) -> Value {
        let answer = self
            .client
            .post("/api/webhooks")
            .key(&self.admin)
            .json(body)
            .send();
        let answer = answer.expect(201, "contract 7: POST /api/webhooks");
        answer["webhook"].clone()
    }
}

impl Bucket {
    /// Creates a rule; `body` lacks only the `bucketId`. Returns its id.
    #[track_caller]
    pub fn rule(&self, body: &Value) -> String {
        let mut body = body.clone();
        body["bucketId"] = json!(self.id);
        let answer = self
            .client
            .post("/api/alerts")
            .key(&self.admin)
            .json(&body)
            .send();
        text(&answer.expect(201, "spec: POST /api/alerts"), "/alertRule/_id")
    }

    /// Creates a rule with an evaluation block on the field `level` of a source.
    #[track_caller]
    pub fn evaluated_rule(&self, name: &str, source: &str) -> String {
        self.rule(&json!({
            "dataSourceId": source, "name": name, "naturalLanguageQuery": "level is above 5",
            "evaluation": evaluation("level"),
        }))
    }

    /// The current answer of GET for a rule.
    #[track_caller]
    pub fn show(&self, rule: &str) -> Value {
        let answer = self
            .client
            .get(&format!("/api/alerts/{rule}"))
            .key(&self.admin)
            .send();
        answer.expect(200, "contract 6: GET /api/alerts/:id")["alertRule"].clone()
    }

    /// The whole history of a rule, newest first.
    #[track_caller]
    pub fn history(&self, rule: &str) -> Vec<Value> {
        let path = format!("/api/alerts/{rule}/history?limit=1000");
        let answer = self.client.get(&path).key(&self.admin).send();
        let answer = answer.expect(200, "contract 6: GET /api/alerts/:id/history");
        assert_eq!(
            answer["pagination"]["hasMore"], false,
            "this test's history fits one page"
        );
        answer["history"].as_array().cloned().unwrap_or_default()
    }
}

/// An evaluator: a client with an integration key.
#[derive(Clone)]
pub struct Evaluator {
    pub client: Client,
    pub key: String,
}

impl Evaluator {
    /// Lists due rules; `parameters` starts with `?` unless it is empty.
    #[track_caller]
    pub fn due(&self, parameters: &str) -> Vec<Value> {
        let path = format!("/api/evaluations/due{parameters}");
        let answer = self.client.get(&path).key(&self.key).send();
        let answer = answer.expect(200, "spec: GET /api/evaluations/due");
        let listed = answer["evaluations"].as_array().cloned();
        let listed = listed.unwrap_or_else(|| panic!("spec: `evaluations` is an array: {answer}"));
        assert_eq!(answer["count"], listed.len(), "spec: `count` of the listed");
        listed
    }

    /// The ids of the rules that are due, in the order listed.
    #[track_caller]
    pub fn due_rules(&self, parameters: &str) -> Vec<String> {
        self.due(parameters)
            .iter()
            .map(|due| text(due, "/ruleId"))
            .collect()
    }

    pub fn verdict(&self, rule: &str, body: &Value) -> Answer {
        let path = format!("/api/evaluations/{rule}/verdict");
        self.client.post(&path).key(&self.key).json(body).send()
    }

    /// Posts a verdict that must be accepted; returns its `evaluation`.
    #[track_caller]
    pub fn evaluate(&self, rule: &str, outcome: &str) -> Value {
        let answer = self.verdict(rule, &json!({"outcome": outcome, "evidence": {}}));
        answer.expect(200, "contract 6: a verdict is accepted once per due interval")["evaluation"].clone()
    }
}
