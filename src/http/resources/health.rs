//! Whether the process lives, and whether it takes writes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Anyone, Call, Endpoint, Reply, get};
use crate::http::shape::HealthDoc;

/// What a prober should wait before it asks again.
const RETRY_AFTER_SECONDS: u32 = 5;

/// How the server is.
#[derive(Serialize, ToSchema)]
pub struct HealthAnswer {
    /// How it is.
    #[schema(value_type = HealthDoc)]
    pub status: &'static str,
    /// Ids of the buckets that answer 503 because their files or their state failed; the log says what it was. On
    /// `/ready`, and only when there are any: the others are served.
    #[serde(rename = "setApart", skip_serializing_if = "Vec::is_empty")]
    #[schema(rename = "setApart", required = false)]
    pub set_apart: Vec<String>,
    /// Blocks of points that queries or merges met and that do not read; the log says where they are. On `/ready`, and
    /// only when there are any: queries that need one answer 500.
    #[serde(rename = "damagedBlocks", skip_serializing_if = "Option::is_none")]
    #[schema(rename = "damagedBlocks", required = false, minimum = 1)]
    pub damaged_blocks: Option<u64>,
}

impl HealthAnswer {
    pub fn of(status: &'static str) -> Self {
        HealthAnswer {
            status,
            set_apart: Vec::new(),
            damaged_blocks: None,
        }
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
    let service = call.service;
    service
        .readiness()
        .map_err(|why| ServiceError::unavailable(format!("not ready: {why}"), RETRY_AFTER_SECONDS))?;
    Answer::of(&HealthAnswer {
        set_apart: service.buckets_set_apart(),
        damaged_blocks: Some(service.buckets.damaged().count()).filter(|count| *count > 0),
        ..HealthAnswer::of("ready")
    })
}
