//! `/metrics`: all counters in the Prometheus text format. Label values are fixed (routes, methods, statuses,
//! outcomes), never names or IDs of users: the output has the same few hundred lines for ten users and for ten
//! thousand.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::Data;

use crate::error::ServiceError;
use crate::http::endpoint::{Anyone, Call, Endpoint, get};
use crate::http::server::body_budget::BodyBudget;
use crate::http::server::middleware::Shared;
use crate::http::server::process;
use crate::metrics::Exposition;
use crate::service::Figures;

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/metrics", "exposeMetrics", expose).of_types(&["text/plain"])]
}

async fn expose(call: Call<Anyone>) -> Result<HttpResponse, ServiceError> {
    let request = &call.request;
    let mut text = Exposition::default();
    process::write(&mut text);
    if let Some(shared) = request.app_data::<Data<Shared>>() {
        text.gauge(
            "tidewatch_http_connections",
            "Open connections.",
            shared.connections.open_connections(),
        );
        text.counter(
            "tidewatch_http_connections_cut_total",
            "Connections that were cut for keeping the server waiting.",
            shared.connections.cut_connections(),
        );
        shared.metrics.write(&mut text);
        text.gauge(
            "tidewatch_answer_bytes",
            "Memory held by large responses that clients have not read yet.",
            shared.answers.held_bytes(),
        );
        text.gauge(
            "tidewatch_answer_bytes_max",
            "Limit of that memory; requests above it get 503.",
            shared.answers.bytes_max(),
        );
    }
    if let Some(bodies) = request.app_data::<Data<BodyBudget>>() {
        text.gauge(
            "tidewatch_body_bytes",
            "Memory held by large request bodies.",
            bodies.used_bytes(),
        );
        text.gauge(
            "tidewatch_body_bytes_max",
            "Limit of that memory; requests above it get 503.",
            bodies.bytes_max(),
        );
    }
    write(&call.service.figures().await, &mut text);
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, Exposition::CONTENT_TYPE));
    response.insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(text.finish()))
}

fn write(figures: &Figures, text: &mut Exposition) {
    text.gauge(
        "tidewatch_ready",
        "1 when writes are accepted, 0 when the log accepts none.",
        u8::from(figures.ready),
    );
    write_ingest(figures, text);
    write_log(figures, text);
    write_queries(figures, text);
    write_alerts(figures, text);
}

fn write_ingest(figures: &Figures, text: &mut Exposition) {
    let Figures { ingest, buckets, .. } = figures;
    text.counter("tidewatch_ingest_points_total", "Points stored.", ingest.points);
    text.counter(
        "tidewatch_ingest_bytes_total",
        "Decompressed bytes of request bodies whose points were stored.",
        ingest.bytes,
    );
    text.counter(
        "tidewatch_ingest_entry_errors_total",
        "Batch entries rejected.",
        ingest.entry_errors,
    );
    text.counter(
        "tidewatch_ingest_replays_total",
        "Ingests answered with the stored response of their idempotency key.",
        ingest.replays,
    );
    text.counter(
        "tidewatch_ingest_refused_total",
        "Ingests refused because memory or their bucket's mailbox was full.",
        buckets.refused,
    );
    text.gauge(
        "tidewatch_bucket_actors",
        "Running bucket actors.",
        buckets.actors,
    );
    text.gauge(
        "tidewatch_buckets_set_apart",
        "Buckets that answer 503 because their files or their state failed; /ready names them.",
        buckets.set_apart,
    );
    text.gauge(
        "tidewatch_damaged_blocks",
        "Blocks of points in use that queries or merges found unreadable.",
        buckets.damaged_blocks,
    );
    text.counter(
        "tidewatch_damaged_reads_total",
        "Queries that failed because of an unreadable block.",
        buckets.damaged_reads,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_bytes",
        "Bytes queued in the mailboxes of all buckets.",
        buckets.mailbox_bytes,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_fullest_bytes",
        "Bytes queued in the fullest mailbox.",
        buckets.fullest_mailbox_bytes,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_bytes_max",
        "Limit of bytes queued in one mailbox; ingests above it get 503.",
        buckets.mailbox_bytes_max,
    );
    text.gauge(
        "tidewatch_unsaved_bytes",
        "Memory of rows not yet in a segment, and of ingests in progress.",
        buckets.memory_bytes,
    );
    text.gauge(
        "tidewatch_unsaved_bytes_max",
        "Limit of that memory; ingests above it get 503.",
        buckets.memory_bytes_max,
    );
    text.gauge(
        "tidewatch_block_cache_bytes",
        "Memory of the cache of decoded block summaries and rollups.",
        buckets.cache_bytes,
    );
    text.gauge(
        "tidewatch_block_cache_bytes_max",
        "Limit of that memory; above it entries are evicted.",
        buckets.cache_bytes_max,
    );
}

fn write_log(figures: &Figures, text: &mut Exposition) {
    let Figures {
        journal,
        checkpoints,
        ledger,
        ..
    } = figures;
    text.counter(
        "tidewatch_log_frames_total",
        "Groups written to the log.",
        journal.frames,
    );
    text.counter(
        "tidewatch_log_records_total",
        "Records written to the log.",
        journal.records,
    );
    text.counter(
        "tidewatch_log_bytes_total",
        "Bytes written to the log.",
        journal.bytes,
    );
    text.counter("tidewatch_log_syncs_total", "Syncs of the log.", journal.syncs);
    text.counter(
        "tidewatch_log_sync_seconds_total",
        "Seconds spent in syncs of the log.",
        seconds(journal.sync_nanoseconds),
    );
    text.gauge(
        "tidewatch_log_tail_bytes",
        "Bytes of log that a restart must replay.",
        journal.tail_bytes,
    );
    text.gauge(
        "tidewatch_log_queue_records",
        "Records queued for the log.",
        journal.waiting_records,
    );
    text.gauge(
        "tidewatch_log_queue_bytes",
        "Bytes queued for the log.",
        journal.waiting_bytes,
    );
    text.gauge(
        "tidewatch_log_queue_bytes_max",
        "Limit of bytes queued for the log; requests above it get 503.",
        journal.waiting_bytes_max,
    );
    let mut by_outcome = text.counters("tidewatch_checkpoints_total", "Checkpoints, by outcome.");
    by_outcome.sample(&[("outcome", "done")], checkpoints.checkpoints);
    by_outcome.sample(&[("outcome", "failed")], checkpoints.failures);
    text.counter(
        "tidewatch_checkpoint_seconds_total",
        "Seconds spent in checkpoints.",
        seconds(checkpoints.nanoseconds),
    );
    let mut recovery = text.gauges(
        "tidewatch_recovery_seconds",
        "Seconds that recovery took at startup, by part.",
    );
    let times = checkpoints.recovery;
    for (part, took) in [
        ("catalog", times.catalog),
        ("footers", times.footers),
        ("replay", times.replay),
    ] {
        recovery.sample(&[("part", part)], took.as_secs_f64());
    }
    text.counter(
        "tidewatch_segment_merges_total",
        "Merges of segments.",
        checkpoints.merges,
    );
    text.gauge("tidewatch_segment_files", "Segment files.", checkpoints.segments);
    text.counter(
        "tidewatch_disk_syncs_total",
        "Syncs of files and directories, including the log.",
        checkpoints.disk_syncs,
    );
    text.counter(
        "tidewatch_unreadable_pages_total",
        "Pages of mapped files that the disk failed to read. Requests that need them fail.",
        checkpoints.unreadable_pages,
    );
    text.gauge(
        "tidewatch_ledger_files",
        "Files of histories, deliveries, stored idempotent responses and the catalog.",
        ledger.runs,
    );
    text.gauge("tidewatch_ledger_bytes", "Bytes of those files.", ledger.bytes);
}

fn write_queries(figures: &Figures, text: &mut Exposition) {
    let queries = &figures.queries;
    text.histogram(
        "tidewatch_query_duration_seconds",
        "Seconds that queries ran on a query thread.",
        &queries.durations,
    );
    text.counter(
        "tidewatch_query_rows_touched_total",
        "Rows and rollup cells that queries read.",
        queries.touched,
    );
    text.counter(
        "tidewatch_query_blocks_opened_total",
        "Blocks that queries opened because their summaries did not suffice.",
        queries.blocks_opened,
    );
    text.counter(
        "tidewatch_queries_refused_total",
        "Queries refused because the queue was full.",
        queries.refused,
    );
    text.counter(
        "tidewatch_queries_abandoned_total",
        "Queries whose client disconnected or whose deadline passed before a thread was free.",
        queries.abandoned,
    );
    text.gauge(
        "tidewatch_query_queue_length",
        "Queries queued for a thread.",
        queries.waiting,
    );
    text.gauge(
        "tidewatch_query_queue_length_max",
        "Limit of queued queries; queries above it get 503.",
        queries.waiting_max,
    );
}

fn write_alerts(figures: &Figures, text: &mut Exposition) {
    if let Some(due) = figures.rules_due {
        text.gauge("tidewatch_rules_due", "Rules that are due and not claimed.", due);
    }
    let (waiting, waiting_max) = figures.rules_waiting;
    text.gauge(
        "tidewatch_rules_queue_length",
        "Queued rule changes and polls.",
        waiting,
    );
    text.gauge(
        "tidewatch_rules_queue_length_max",
        "Limit of queued rule changes and polls; requests above it get 503.",
        waiting_max,
    );
    let deliveries = &figures.deliveries;
    let mut attempts = text.counters(
        "tidewatch_delivery_attempts_total",
        "Webhook delivery attempts, by outcome.",
    );
    for (outcome, count) in [
        ("delivered", deliveries.attempts_delivered),
        ("refused", deliveries.attempts_refused),
        ("unanswered", deliveries.attempts_unanswered),
    ] {
        attempts.sample(&[("outcome", outcome)], count);
    }
    text.counter(
        "tidewatch_deliveries_dropped_total",
        "Best-effort deliveries and events (data.received) dropped because a queue was full.",
        deliveries.dropped,
    );
    text.gauge(
        "tidewatch_deliveries_pending",
        "Deliveries that are waiting, ready or in flight.",
        deliveries.pending,
    );
    text.gauge(
        "tidewatch_deliveries_in_flight",
        "Delivery attempts in flight.",
        deliveries.in_flight,
    );
    text.gauge(
        "tidewatch_delivery_queue_bytes",
        "Bytes of events queued to be expanded into deliveries.",
        deliveries.offered_bytes,
    );
    text.gauge(
        "tidewatch_delivery_queue_bytes_max",
        "Limit of that queue; events above it are dropped.",
        deliveries.offered_bytes_max,
    );
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
