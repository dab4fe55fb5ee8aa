//! Liveness and readiness probes.

use super::views::view;
use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Anyone, Call, Endpoint, Reply, get};
use crate::http::shape::HealthDoc;

/// `Retry-After` of a failed probe.
const RETRY_AFTER_SECONDS: u32 = 5;

view! {
    /// Health of the server.
    pub struct HealthAnswer of(status: &'static str) {
        /// Status of the process.
        #[schema(value_type = HealthDoc)]
        status: &'static str = status,
        /// IDs of the buckets that return 503 because their files or their state failed; the log has the cause. Only on
        /// `/ready`, and absent when there are none. All other buckets are served.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        set_apart: Vec<String> = Vec::new(),
        /// Number of unreadable blocks of points that queries or merges found; the log has their locations. Only on
        /// `/ready`, and absent when there are none. Queries that need such a block return 500.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, minimum = 1)]
        damaged_blocks: Option<u64> = None,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/health", "showHealth", alive),
        get("/ready", "showReadiness", ready),
    ]
}

async fn alive(_: Call<Anyone>) -> Reply<HealthAnswer> {
    Answer::of(&HealthAnswer::of("ok"))
}

async fn ready(call: Call<Anyone>) -> Reply<HealthAnswer> {
    let node = call.service;
    node.readiness()
        .map_err(|why| ServiceError::unavailable(format!("not ready: {why}"), RETRY_AFTER_SECONDS))?;
    Answer::of(&HealthAnswer {
        set_apart: node.buckets_set_apart(),
        damaged_blocks: Some(node.damaged_blocks()).filter(|count| *count > 0),
        ..HealthAnswer::of("ready")
    })
}
