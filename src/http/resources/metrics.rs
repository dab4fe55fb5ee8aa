//! `/metrics`: all counters in the Prometheus text format. Label values are fixed (routes, methods, statuses,
//! outcomes), never names or IDs of users: the output has the same few hundred lines for ten users and for ten
//! thousand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::web::Data;

use crate::error::ServiceError;
use crate::extents::ExtentStats;
use crate::http::endpoint::{Anyone, Call, Endpoint, get};
use crate::http::respond;
use crate::http::server::body_budget::BodyBudget;
use crate::http::server::middleware::Shared;
use crate::http::server::process;
use crate::metrics::Exposition;
use crate::service::{ClusterFigures, Figures, PublishFigures};

/// Writes metrics without labels, a row each: kind, name, value, help.
macro_rules! metrics {
    ($text:ident: $($kind:ident $name:literal = $value:expr, $help:literal;)+) => {
        $($text.$kind($name, $help, $value);)+
    };
}

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
        metrics! {
            text:
            gauge "tidewatch_answer_bytes" = shared.answers.held_bytes(),
                "Memory held by large responses that clients have not read yet.";
            gauge "tidewatch_answer_bytes_max" = shared.answers.bytes_max(),
                "Limit of that memory; requests above it get 503.";
        }
    }
    if let Some(bodies) = request.app_data::<Data<BodyBudget>>() {
        metrics! {
            text:
            gauge "tidewatch_body_bytes" = bodies.used_bytes(), "Memory held by large request bodies.";
            gauge "tidewatch_body_bytes_max" = bodies.bytes_max(),
                "Limit of that memory; requests above it get 503.";
        }
    }
    write(&call.service.figures().await, &mut text);
    if let Some(cluster) = call.service.cluster() {
        write_cluster(&cluster.table.figures(), &mut text);
    }
    let mut response = respond::respond(request, StatusCode::OK, text.finish().into_bytes()).await?;
    let content_type = HeaderValue::from_static(Exposition::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
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
    if let Some(extents) = &figures.extents {
        write_extents(extents, text);
    }
    write_alerts(figures, text);
}

fn write_cluster(figures: &ClusterFigures, text: &mut Exposition) {
    metrics! {
        text:
        gauge "tidewatch_cluster_shards" = figures.shards, "Shards of the cluster.";
        gauge "tidewatch_cluster_shards_served" = figures.served, "Shards that this node serves.";
        gauge "tidewatch_cluster_lease" = u8::from(figures.holds_lease),
            "1 while this node's lease holds, 0 while it must not answer.";
        counter "tidewatch_cluster_shards_opened_total" = figures.opened, "Shards that this node has opened.";
        counter "tidewatch_cluster_opening_seconds_total" = seconds(figures.opening_ns),
            "Seconds from the claim of a shard until it was served.";
        counter "tidewatch_cluster_shards_handed_over_total" = figures.handed_over,
            "Shards that this node has handed over.";
        counter "tidewatch_cluster_hand_over_pause_seconds_total" = seconds(figures.paused_ns),
            "Seconds in which this node had ended serving a shard and not released it.";
        counter "tidewatch_cluster_epochs_lost_total" = figures.dropped,
            "Shards dropped because another node took them, or because their log had to be read again.";
        counter "tidewatch_cluster_requests_forwarded_total" = figures.forwarded,
            "Requests that another node has answered.";
        counter "tidewatch_cluster_requests_unanswered_total" = figures.unanswered,
            "Requests whose shard's owner did not answer in time; they got 503.";
    }
}

fn write_ingest(figures: &Figures, text: &mut Exposition) {
    let Figures { ingest, buckets, .. } = figures;
    metrics! {
        text:
        counter "tidewatch_ingest_points_total" = ingest.points, "Points stored.";
        counter "tidewatch_ingest_bytes_total" = ingest.bytes,
            "Decompressed bytes of request bodies whose points were stored.";
        counter "tidewatch_ingest_entry_errors_total" = ingest.entry_errors, "Batch entries rejected.";
        counter "tidewatch_ingest_replays_total" = ingest.replays,
            "Ingests answered with the stored response of their idempotency key.";
        counter "tidewatch_ingest_refused_total" = buckets.refused,
            "Ingests refused because memory or their bucket's mailbox was full.";
        gauge "tidewatch_bucket_actors" = buckets.actors, "Running bucket actors.";
        gauge "tidewatch_buckets_set_apart" = buckets.set_apart,
            "Buckets that answer 503 because their files or their state failed; /ready names them.";
        gauge "tidewatch_damaged_blocks" = buckets.damaged_blocks,
            "Blocks of points in use that queries or merges found unreadable.";
        counter "tidewatch_damaged_reads_total" = buckets.damaged_reads,
            "Queries that failed because of an unreadable block.";
        gauge "tidewatch_bucket_mailbox_bytes" = buckets.mailbox_bytes,
            "Bytes queued in the mailboxes of all buckets.";
        gauge "tidewatch_bucket_mailbox_fullest_bytes" = buckets.fullest_mailbox_bytes,
            "Bytes queued in the fullest mailbox.";
        gauge "tidewatch_bucket_mailbox_bytes_max" = buckets.mailbox_bytes_max,
            "Limit of bytes queued in one mailbox; ingests above it get 503.";
        gauge "tidewatch_unsaved_bytes" = buckets.memory_bytes,
            "Memory of rows not yet in a segment, and of ingests in progress.";
        gauge "tidewatch_unsaved_bytes_max" = buckets.memory_bytes_max,
            "Limit of that memory; ingests above it get 503.";
        gauge "tidewatch_block_cache_bytes" = buckets.cache_bytes,
            "Memory of the cache of decoded block summaries and rollups.";
        gauge "tidewatch_block_cache_bytes_max" = buckets.cache_bytes_max,
            "Limit of that memory; above it entries are evicted.";
    }
}

fn write_log(figures: &Figures, text: &mut Exposition) {
    let Figures {
        journal,
        checkpoints,
        ledger,
        ..
    } = figures;
    metrics! {
        text:
        counter "tidewatch_log_frames_total" = journal.frames, "Groups written to the log.";
        counter "tidewatch_log_records_total" = journal.records, "Records written to the log.";
        counter "tidewatch_log_bytes_total" = journal.bytes, "Bytes written to the log.";
        counter "tidewatch_log_syncs_total" = journal.syncs, "Syncs of the log.";
        counter "tidewatch_log_sync_seconds_total" = seconds(journal.sync_nanoseconds),
            "Seconds spent in syncs of the log.";
        gauge "tidewatch_log_tail_bytes" = journal.tail_bytes, "Bytes of log that a restart must replay.";
        gauge "tidewatch_log_queue_records" = journal.waiting_records, "Records queued for the log.";
        gauge "tidewatch_log_queue_bytes" = journal.waiting_bytes, "Bytes queued for the log.";
        gauge "tidewatch_log_queue_bytes_max" = journal.waiting_bytes_max,
            "Limit of bytes queued for the log; requests above it get 503.";
    }
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
    metrics! {
        text:
        counter "tidewatch_segment_merges_total" = checkpoints.merges, "Merges of segments.";
        gauge "tidewatch_segment_files" = checkpoints.segments, "Segment files.";
        counter "tidewatch_disk_syncs_total" = checkpoints.disk_syncs,
            "Syncs of files and directories, including the log.";
        counter "tidewatch_unreadable_pages_total" = checkpoints.unreadable_pages,
            "Pages of mapped files that the disk failed to read. Requests that need them fail.";
        gauge "tidewatch_ledger_files" = ledger.runs,
            "Files of histories, deliveries, stored idempotent responses and the catalog.";
        gauge "tidewatch_ledger_bytes" = ledger.bytes, "Bytes of those files.";
    }
    if let Some(published) = &checkpoints.published {
        write_published(published, figures.monotonic_ns, text);
    }
}

fn write_published(published: &PublishFigures, now_ns: i64, text: &mut Exposition) {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut by_outcome = text.counters(
        "tidewatch_remote_publishes_total",
        "Checkpoints published to the object store, by outcome.",
    );
    by_outcome.sample(&[("outcome", "done")], read(&published.published));
    by_outcome.sample(&[("outcome", "failed")], read(&published.failures));
    metrics! {
        text:
        counter "tidewatch_remote_uploads_total" = read(&published.uploads),
            "Objects stored in the object store.";
        counter "tidewatch_remote_upload_bytes_total" = read(&published.upload_bytes), "Bytes of those objects.";
        counter "tidewatch_remote_deletions_total" = read(&published.deleted),
            "Objects deleted from the object store because no kept checkpoint needs them.";
        gauge "tidewatch_remote_files" = read(&published.files),
            "Files that the last published checkpoint consists of.";
        gauge "tidewatch_remote_covered_record" = read(&published.covered),
            "Last record of the log that is in the last published checkpoint.";
    }
    // Before the first one there is no age.
    let at_ns = published.published_at_ns.load(Ordering::Relaxed);
    if at_ns > 0 {
        text.gauge(
            "tidewatch_remote_age_seconds",
            "Seconds since the object store had everything that the last checkpoint covers.",
            Duration::from_nanos(now_ns.abs_diff(at_ns)).as_secs_f64(),
        );
    }
}

fn write_queries(figures: &Figures, text: &mut Exposition) {
    let queries = &figures.queries;
    metrics! {
        text:
        histogram "tidewatch_query_duration_seconds" = &queries.durations,
            "Seconds that queries ran.";
        counter "tidewatch_queries_immediate_total" = queries.immediate,
            "Queries answered on the threads of their requests, without being queued for a query thread.";
        counter "tidewatch_query_rows_touched_total" = queries.touched,
            "Rows and rollup cells that queries read.";
        counter "tidewatch_query_blocks_opened_total" = queries.blocks_opened,
            "Blocks that queries opened because their summaries did not suffice.";
        counter "tidewatch_queries_refused_total" = queries.refused,
            "Queries refused because the queue was full.";
        counter "tidewatch_queries_abandoned_total" = queries.abandoned,
            "Queries whose client disconnected or whose deadline passed before a thread was free.";
        gauge "tidewatch_query_queue_length" = queries.waiting, "Queries queued for a thread.";
        gauge "tidewatch_query_queue_length_max" = queries.waiting_max,
            "Limit of queued queries; queries above it get 503.";
    }
}

fn write_extents(extents: &ExtentStats, text: &mut Exposition) {
    metrics! {
        text:
        counter "tidewatch_disk_cache_hits_total" = extents.hits,
            "Reads of blocks in the object store that the disk cache served, counted in parts of 256 KiB.";
        counter "tidewatch_disk_cache_misses_total" = extents.misses,
            "Such reads that waited for the object store.";
        counter "tidewatch_disk_cache_requests_total" = extents.requests,
            "Requests to the object store for blocks.";
        counter "tidewatch_disk_cache_failures_total" = extents.failures,
            "Such requests that failed, or were not made because others had just failed.";
        counter "tidewatch_disk_cache_loaded_bytes_total" = extents.loaded_bytes,
            "Bytes of blocks read from the object store.";
        counter "tidewatch_take_over_requests_total" = extents.take_over_requests,
            "Requests to the object store to take over shards.";
        counter "tidewatch_take_over_bytes_total" = extents.take_over_bytes,
            "Bytes read from the object store to take over shards.";
        counter "tidewatch_take_over_seconds_total" = seconds(extents.take_over_ns),
            "Seconds spent in copying what shards that are taken over need; recovery follows.";
        gauge "tidewatch_disk_cache_bytes" = extents.held_bytes, "Bytes in the disk cache.";
        gauge "tidewatch_disk_cache_bytes_max" = extents.bytes_max,
            "Limit of those bytes; above it the least recently used are evicted.";
    }
}

fn write_alerts(figures: &Figures, text: &mut Exposition) {
    if let Some(due) = figures.rules_due {
        text.gauge("tidewatch_rules_due", "Rules that are due and not claimed.", due);
    }
    let (waiting, waiting_max) = figures.rules_waiting;
    metrics! {
        text:
        gauge "tidewatch_rules_queue_length" = waiting, "Queued rule changes and polls.";
        gauge "tidewatch_rules_queue_length_max" = waiting_max,
            "Limit of queued rule changes and polls; requests above it get 503.";
    }
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
    metrics! {
        text:
        counter "tidewatch_deliveries_dropped_total" = deliveries.dropped,
            "Best-effort deliveries and events (data.received) dropped because a queue was full.";
        gauge "tidewatch_deliveries_pending" = deliveries.pending,
            "Deliveries that are waiting, ready or in flight.";
        gauge "tidewatch_deliveries_in_flight" = deliveries.in_flight, "Delivery attempts in flight.";
        gauge "tidewatch_delivery_queue_bytes" = deliveries.offered_bytes,
            "Bytes of events queued to be expanded into deliveries.";
        gauge "tidewatch_delivery_queue_bytes_max" = deliveries.offered_bytes_max,
            "Limit of that queue; events above it are dropped.";
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
