//! The demo's rules, one in each state, and its webhooks: one that works, one that fails, one that is paused.

use std::net::SocketAddr;

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::api::{Api, ApiError};
use crate::plant::Sensor;
use crate::receiver::{ALERTS_PATH, PAGER_PATH};
use crate::site::Site;

/// Limit in mm/s above which a pump of this size must be stopped (ISO 10816-3, zone D).
pub const VIBRATION_MAX: f64 = 7.1;
/// Window of the vibration rule. Longer than the start of the demo takes, so that it includes the burst before it.
pub const VIBRATION_WINDOW_S: i64 = 180;

/// Creates the webhooks. `secret` signs the deliveries to the receiver.
///
/// # Errors
/// The service refuses one.
pub async fn add_webhooks(owner: &Api, receiver: SocketAddr, secret: &str) -> Result<(), ApiError> {
    let working = json!({
        "url": format!("http://{receiver}{ALERTS_PATH}"), "events": ["alert.triggered"], "secret": secret,
    });
    let failing = json!({
        "url": format!("http://{receiver}{PAGER_PATH}"), "events": ["alert.triggered"],
    });
    let paused = json!({
        "url": format!("http://{receiver}{ALERTS_PATH}"), "events": ["data.received", "bucket.updated"],
        "secret": secret,
    });
    let mut ids = Vec::new();
    for webhook in [working, failing, paused] {
        ids.push(owner.create("/api/webhooks", &webhook, "/webhook/_id").await?);
    }
    pause(owner, &format!("/api/webhooks/{}", ids[2])).await
}

/// Creates the rules. A new rule is due at once, so its points should have been sent before.
///
/// # Errors
/// The service refuses one.
pub async fn add_rules(site: &Site) -> Result<(), ApiError> {
    // Fires at the first evaluation, and again with every burst above the limit.
    let vibration = json!({
        "name": "Vibration of pump 101", "naturalLanguageQuery": "vibration exceeds 7.1 mm/s",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": VIBRATION_WINDOW_S, "dwellSeconds": 60,
            "inputs": [{"key": "vibration", "field": "vibration"}],
            "parameters": {"operator": "gt", "value": VIBRATION_MAX},
        },
    });
    add_rule(site, Sensor::MainPump, vibration).await?;
    // Fires in some of the tank's cycles, for the first time after five minutes.
    let level = json!({
        "name": "Level of tank 201", "naturalLanguageQuery": "level is outside 25 to 88",
        "evaluation": {
            "kind": "range", "intervalSeconds": 60, "windowSeconds": 120, "dwellSeconds": 120,
            "inputs": [{"key": "level", "field": "level"}],
            "parameters": {"low": 25, "high": 88},
        },
    });
    add_rule(site, Sensor::Tank, level).await?;
    // Stays armed.
    let bearing = json!({
        "name": "Bearing of pump 101 is hot", "naturalLanguageQuery": "bearing temperature exceeds 85 °C",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 900, "dwellSeconds": 600,
            "inputs": [{"key": "bearing", "field": "bearing_temperature", "aggregation": "avg", "groupBy": "minute"}],
            "parameters": {"operator": "gt", "value": 85},
        },
    });
    add_rule(site, Sensor::MainPump, bearing).await?;
    // Paused.
    let humidity = json!({
        "name": "Dry air in the hall", "naturalLanguageQuery": "humidity drops below 25 %",
        "evaluation": {
            "kind": "threshold", "intervalSeconds": 300, "windowSeconds": 3600, "dwellSeconds": 600,
            "inputs": [{"key": "humidity", "field": "humidity", "aggregation": "avg", "groupBy": "minute"}],
            "parameters": {"operator": "lt", "value": 25, "match": "all"},
        },
    });
    let humidity = add_rule(site, Sensor::Air, humidity).await?;
    pause(&site.owner, &format!("/api/alerts/{humidity}")).await
}

async fn pause(owner: &Api, path: &str) -> Result<(), ApiError> {
    let paused = json!({"status": "paused"});
    owner.send(Method::PATCH, path, &paused).await.map(drop)
}

/// Creates a rule and returns its id.
async fn add_rule(site: &Site, sensor: Sensor, mut rule: Value) -> Result<String, ApiError> {
    rule["bucketId"] = site.bucket.as_str().into();
    rule["dataSourceId"] = site.source(sensor.name()).into();
    site.owner.create("/api/alerts", &rule, "/alertRule/_id").await
}
