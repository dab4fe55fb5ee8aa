//! `/metrics`: what all rooms count, as Prometheus reads it. Labels are words of the program (routes, methods, statuses,
//! outcomes), never names or ids of anybody: the text has the same few hundred lines for ten users and for ten thousand.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::Data;

use crate::error::ServiceError;
use crate::http::endpoint::{Anyone, Call, Endpoint, Written, get};
use crate::http::server::body_budget::BodyBudget;
use crate::http::server::middleware::Shared;
use crate::http::server::process;
use crate::metrics::Exposition;
use crate::service::Figures;

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/metrics", "exposeMetrics", expose).of_types(&["text/plain"])]
}

async fn expose(call: Call<Anyone>) -> Result<Written, ServiceError> {
    let request = &call.request;
    let mut text = Exposition::default();
    process::write(&mut text);
    if let Some(shared) = request.app_data::<Data<Shared>>() {
        shared.connections.write(&mut text);
        shared.metrics.write(&mut text);
        text.gauge(
            "tidewatch_answer_bytes",
            "Memory of large answers that their clients have not taken.",
            shared.answers.held_bytes(),
        );
        text.gauge(
            "tidewatch_answer_bytes_max",
            "Memory that large answers may take until their clients have taken them; above it 503.",
            shared.answers.bytes_max(),
        );
    }
    if let Some(bodies) = request.app_data::<Data<BodyBudget>>() {
        text.gauge(
            "tidewatch_body_bytes",
            "Memory of large request bodies that are held.",
            bodies.used_bytes(),
        );
        text.gauge(
            "tidewatch_body_bytes_max",
            "Memory that large request bodies may take; above it 503.",
            bodies.bytes_max(),
        );
    }
    write(&call.service.figures().await, &mut text);
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, Exposition::CONTENT_TYPE));
    response.insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(text.finish()).into())
}

fn write(figures: &Figures, text: &mut Exposition) {
    text.gauge(
        "tidewatch_ready",
        "1 when writes are taken, 0 when the log takes none.",
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
        "Bytes of the bodies that stored points came in, decompressed.",
        ingest.bytes,
    );
    text.counter(
        "tidewatch_ingest_entry_errors_total",
        "Entries of batches that were refused.",
        ingest.entry_errors,
    );
    text.counter(
        "tidewatch_ingest_replays_total",
        "Ingests answered from their idempotency key.",
        ingest.replays,
    );
    text.counter(
        "tidewatch_ingest_refused_total",
        "Ingests refused because memory or their bucket's mailbox was full.",
        buckets.refused,
    );
    text.gauge(
        "tidewatch_bucket_actors",
        "Bucket actors that run.",
        buckets.actors,
    );
    text.gauge(
        "tidewatch_buckets_set_apart",
        "Buckets that answer 503 because their files or their state failed; /ready names them.",
        buckets.set_apart,
    );
    text.gauge(
        "tidewatch_damaged_blocks",
        "Blocks of points in use that queries or merges met and that do not read.",
        buckets.damaged_blocks,
    );
    text.counter(
        "tidewatch_damaged_reads_total",
        "Queries that failed because they met one.",
        buckets.damaged_reads,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_bytes",
        "Bytes on their way into all buckets.",
        buckets.mailbox_bytes,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_fullest_bytes",
        "Bytes on their way into the bucket that has most of them.",
        buckets.fullest_mailbox_bytes,
    );
    text.gauge(
        "tidewatch_bucket_mailbox_bytes_max",
        "Bytes that may be on their way into one bucket; above it 503.",
        buckets.mailbox_bytes_max,
    );
    text.gauge(
        "tidewatch_unsaved_bytes",
        "Memory of rows that no segment holds yet, and of what is on its way to become some.",
        buckets.memory_bytes,
    );
    text.gauge(
        "tidewatch_unsaved_bytes_max",
        "Memory that those may take; above it ingests get 503.",
        buckets.memory_bytes_max,
    );
    text.gauge(
        "tidewatch_block_cache_bytes",
        "Memory of block summaries and rollups that are kept decoded.",
        buckets.cache_bytes,
    );
    text.gauge(
        "tidewatch_block_cache_bytes_max",
        "Memory that those may take; above it some are dropped.",
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
        "Time that syncs of the log took.",
        seconds(journal.sync_nanoseconds),
    );
    text.gauge(
        "tidewatch_log_tail_bytes",
        "Log that a restart would have to read.",
        journal.tail_bytes,
    );
    text.gauge(
        "tidewatch_log_queue_records",
        "Records that wait for the log.",
        journal.waiting_records,
    );
    text.gauge(
        "tidewatch_log_queue_bytes",
        "Bytes that wait for the log.",
        journal.waiting_bytes,
    );
    text.gauge(
        "tidewatch_log_queue_bytes_max",
        "Bytes that may wait for the log; above it 503.",
        journal.waiting_bytes_max,
    );
    let mut by_outcome = text.counters("tidewatch_checkpoints_total", "Checkpoints, by outcome.");
    by_outcome.sample(&[("outcome", "done")], checkpoints.checkpoints);
    by_outcome.sample(&[("outcome", "failed")], checkpoints.failures);
    text.counter(
        "tidewatch_checkpoint_seconds_total",
        "Time that checkpoints took.",
        seconds(checkpoints.nanoseconds),
    );
    let mut recovery = text.gauges(
        "tidewatch_recovery_seconds",
        "Time that the recovery at the start took, by part.",
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
        "Syncs of files and directories, those of the log included.",
        checkpoints.disk_syncs,
    );
    text.counter(
        "tidewatch_unreadable_pages_total",
        "Pages of mapped files that the disk did not read: it fails; what needs them is an error.",
        checkpoints.unreadable_pages,
    );
    text.gauge(
        "tidewatch_ledger_files",
        "Files of histories, deliveries, answers to idempotency keys and the catalog.",
        ledger.runs,
    );
    text.gauge("tidewatch_ledger_bytes", "Bytes of those files.", ledger.bytes);
}

fn write_queries(figures: &Figures, text: &mut Exposition) {
    let queries = &figures.queries;
    text.histogram(
        "tidewatch_query_duration_seconds",
        "Time that queries took on their thread.",
        &queries.durations,
    );
    text.counter(
        "tidewatch_query_rows_touched_total",
        "Rows and cells of rollups that queries looked at.",
        queries.touched,
    );
    text.counter(
        "tidewatch_query_blocks_opened_total",
        "Blocks that queries opened, because what is known of them without reading them did not do.",
        queries.blocks_opened,
    );
    text.counter(
        "tidewatch_queries_refused_total",
        "Queries refused because too many waited.",
        queries.refused,
    );
    text.counter(
        "tidewatch_queries_abandoned_total",
        "Queries whose client had gone, or whose time was up, before a thread was free.",
        queries.abandoned,
    );
    text.gauge(
        "tidewatch_query_queue_length",
        "Queries that wait for a thread.",
        queries.waiting,
    );
    text.gauge(
        "tidewatch_query_queue_length_max",
        "Queries that may wait; above it 503.",
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
        "Changes and polls of rules that wait.",
        waiting,
    );
    text.gauge(
        "tidewatch_rules_queue_length_max",
        "Changes and polls of rules that may wait; above it 503.",
        waiting_max,
    );
    let deliveries = &figures.deliveries;
    let mut attempts = text.counters(
        "tidewatch_delivery_attempts_total",
        "Attempts to deliver to webhooks, by outcome.",
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
        "Best-effort deliveries and events (data.received) dropped for want of room.",
        deliveries.dropped,
    );
    text.gauge(
        "tidewatch_deliveries_pending",
        "Deliveries that wait, are ready or in flight.",
        deliveries.pending,
    );
    text.gauge(
        "tidewatch_deliveries_in_flight",
        "Attempts to deliver in flight.",
        deliveries.in_flight,
    );
    text.gauge(
        "tidewatch_delivery_queue_bytes",
        "Bytes of events that wait to be turned into deliveries.",
        deliveries.offered_bytes,
    );
    text.gauge(
        "tidewatch_delivery_queue_bytes_max",
        "Bytes of events that may wait; above it they are dropped.",
        deliveries.offered_bytes_max,
    );
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
