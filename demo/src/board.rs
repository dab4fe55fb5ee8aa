//! The demo's board: the plant as its control room would see it.

use serde_json::{Value, json};

use crate::api::ApiError;
use crate::plant::Sensor;
use crate::rules::VIBRATION_MAX;
use crate::site::Site;

/// Points of a chart that is about as wide as a screen.
const POINTS: u64 = 1_000;

/// Creates the board. Returns its id.
///
/// # Errors
/// The service refuses it.
pub async fn add_board(site: &Site) -> Result<String, ApiError> {
    let board = json!({
        "name": "Control room", "range": "1h", "refreshSeconds": 5,
        "variables": [{
            "name": "pump", "default": site.source(Sensor::MainPump.name()),
            "values": [site.source(Sensor::MainPump.name()), site.source(Sensor::FeedPump.name())],
        }],
        "panels": panels(site),
    });
    site.owner.create("/api/boards", &board, "/board/_id").await
}

fn panels(site: &Site) -> Vec<Value> {
    let vibration_limits = json!([
        {"value": 0, "level": "good"}, {"value": 4.5, "level": "warning"}, {"value": VIBRATION_MAX, "level": "critical"},
    ]);
    let level_limits = json!([
        {"value": 0, "level": "critical"}, {"value": 25, "level": "good"}, {"value": 88, "level": "critical"},
    ]);
    let charted = |sources: &[&str], field: &str| {
        json!({
            "bucketId": site.bucket, "filters": {"dataSourceIds": sources, "fields": [field]}, "maxPoints": POINTS,
            "layout": "columns",
        })
    };
    let newest = |source: &str, field: &str| {
        json!({
            "bucketId": site.bucket, "filters": {"dataSourceIds": [source], "fields": [field]},
            "aggregation": "last", "groupBy": "all", "layout": "columns",
        })
    };
    let (tank, air) = (site.source(Sensor::Tank.name()), site.source(Sensor::Air.name()));
    let pumps = [Sensor::MainPump, Sensor::FeedPump].map(|sensor| site.source(sensor.name()));
    vec![
        panel("Vibration", "stat", newest("$pump", "vibration"), [0, 0, 3, 4])
            .with("unit", json!("mm/s"))
            .with("decimals", json!(1))
            .with("thresholds", vibration_limits),
        panel("Bearing", "stat", newest("$pump", "bearing_temperature"), [3, 0, 3, 4])
            .with("unit", json!("°C"))
            .with("decimals", json!(1)),
        panel("Level of tank 201", "stat", newest(tank, "level"), [6, 0, 3, 4])
            .with("unit", json!("%"))
            .with("decimals", json!(0))
            .with("thresholds", level_limits),
        panel("Rules", "rules", json!({"bucketId": site.bucket}), [9, 0, 3, 10]),
        panel("Vibration of the pump", "lines", charted(&["$pump"], "vibration"), [0, 4, 9, 6])
            .with("unit", json!("mm/s")),
        panel("Level of tank 201", "lines", charted(&[tank], "level"), [0, 10, 6, 6]).with("unit", json!("%")),
        panel("Pumps running", "states", charted(&pumps, "running"), [6, 10, 6, 3]),
        panel(
            "Flow, by five minutes",
            "bars",
            json!({
                "bucketId": site.bucket, "filters": {"dataSourceIds": pumps, "fields": ["flow"]},
                "aggregation": "avg", "groupBy": "5m", "layout": "columns",
            }),
            [6, 13, 6, 5],
        )
        .with("unit", json!("m³/h"))
        .with("decimals", json!(1)),
        panel(
            "Air of the hall, by five minutes",
            "table",
            json!({
                "bucketId": site.bucket, "filters": {"dataSourceIds": [air]}, "aggregation": "avg", "groupBy": "5m",
                "layout": "columns",
            }),
            [0, 16, 6, 5],
        )
        .with("decimals", json!(1)),
    ]
    .into_iter()
    .map(|panel| panel.0)
    .collect()
}

struct Panel(Value);

/// `place`: column, row, width, height.
fn panel(title: &str, kind: &str, query: Value, [x, y, w, h]: [u32; 4]) -> Panel {
    Panel(json!({"title": title, "kind": kind, "query": query, "x": x, "y": y, "w": w, "h": h}))
}

impl Panel {
    fn with(mut self, member: &str, value: Value) -> Self {
        self.0[member] = value;
        self
    }
}
