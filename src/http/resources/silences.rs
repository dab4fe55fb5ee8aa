//! `/api/silences`: times in which rules that fire are not delivered.

use actix_web::http::StatusCode;

use super::views::{Many, One, Resource, view};
use crate::catalog::Silence;
use crate::http::endpoint::{Answer, Call, Endpoint, Reader, Reply, Writer, delete, get, post};
use crate::http::shape::{List, Moment, Trimmed, body};
use crate::ids::ObjectId;
use crate::limits::{SILENCE_REASON_CHARS_MAX, SILENCED_RULES_MAX};
use crate::service::page::PageRequest;
use crate::service::silences::NewSilence;
use crate::timestamp::Timestamp;

type RuleIds = List<ObjectId, 1, SILENCED_RULES_MAX>;
type Reason = Trimmed<SILENCE_REASON_CHARS_MAX>;

view! {
    /// A silence. Without `bucketId` and `alertIds` it is about all rules of the organization.
    pub struct SilenceView<'a> of(silence: &'a Silence) {
        /// ID of the silence.
        #[serde(rename = "_id")]
        id: ObjectId = silence.id,
        /// Bucket whose rules it is about; null when not given.
        bucket_id: Option<ObjectId> = silence.bucket_id,
        /// Rules that it is about, also deleted ones; null when not given.
        alert_ids: Option<&'a [ObjectId]> = silence.alert_ids.as_deref(),
        /// When it ends.
        until: Timestamp = Timestamp(silence.until_ns),
        /// Why rules are silenced.
        reason: &'a str = &silence.reason,
        /// When the silence was created; it is in force from then on.
        created_at: Timestamp = Timestamp(silence.created_at_ns),
        /// ID of the API key or user that created it.
        created_by: ObjectId = silence.created_by,
    }
}

view! {
    /// A deleted silence.
    pub struct DeletedSilenceView of(silence: &Silence) {
        /// ID of the silence.
        #[serde(rename = "_id")]
        id: ObjectId = silence.id,
    }
}

view! {
    /// The response to a deletion.
    pub struct DeletedSilenceAnswer of(silence: &Silence) {
        /// Result in words.
        message: &'static str = "silence ended",
        /// The deleted silence.
        deleted_silence: DeletedSilenceView = DeletedSilenceView::of(silence),
    }
}

body! {
    /// Body of a request that creates a silence. Without `bucketId` and `alertIds` it is about all rules of the
    /// organization.
    pub struct SilenceBody {
        /// Bucket whose rules are silenced.
        bucket_id: Option<ObjectId>,
        /// Rules that are silenced; with `bucketId`, rules of that bucket.
        alert_ids: Option<RuleIds>,
        /// When the silence ends, ISO 8601, in the future.
        until: Moment,
        /// Why rules are silenced.
        reason: Reason,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/silences", "listSilences", list),
        post("/api/silences", "createSilence", create).status(StatusCode::CREATED),
        get("/api/silences/{id}", "showSilence", show),
        delete("/api/silences/{id}", "deleteSilence", remove),
    ]
}

async fn list(call: Call<Reader, PageRequest>) -> Reply<Many<SilenceView<'static>>> {
    let page = call.service.list_silences(&call.caller, call.params);
    Answer::page(call.params, &page, |silence| SilenceView::of(silence))
}

async fn create(call: Call<Writer, (), SilenceBody>) -> Reply<One<SilenceView<'static>>> {
    let body = call.body;
    let new = NewSilence {
        bucket_id: body.bucket_id,
        alert_ids: body.alert_ids.map(|ids| ids.0),
        until_ns: body.until.0,
        reason: body.reason.0,
    };
    let silence = call.service.create_silence(&call.caller, new).await?;
    Answer::changed("silence created", SilenceView::of(&silence))
}

async fn show(call: Call<Reader, ObjectId>) -> Reply<One<SilenceView<'static>>> {
    let silence = call.service.silence(&call.caller, call.params)?;
    Answer::one(SilenceView::of(&silence))
}

async fn remove(call: Call<Writer, ObjectId>) -> Reply<DeletedSilenceAnswer> {
    let silence = call.service.delete_silence(&call.caller, call.params).await?;
    Answer::of(&DeletedSilenceAnswer::of(&silence))
}

impl Resource for SilenceView<'_> {
    const ONE: &'static str = "silence";
    const MANY: &'static str = "silences";
}
