//! Allowed imports between rooms.

use crate::sources::{Source, assert_none, has_word, joined, names_behind, rust};

/// Which rooms of the server a room may import: the arrows of ARCHITECTURE.md. Any other `crate::x` is an architectural
/// change, which begins with this list.
const ALLOWED_IMPORTS: &[(&str, &[&str])] = &[
    // Terms shared by all rooms.
    ("hex", &[]),
    ("ids", &["hex", "random"]),
    ("clock", &[]),
    ("random", &[]),
    ("limits", &[]),
    ("timestamp", &["clock"]),
    // `catalog` for the standing of a rule, which is a part of refused verdicts.
    ("error", &["catalog", "limits", "random"]),
    ("checked_file", &[]),
    ("sealed_file", &[]),
    ("priority", &[]),
    ("metrics", &[]),
    ("open_files", &[]),
    ("progress", &[]),
    ("pools", &[]),
    ("query_pool", &["error", "ids", "metrics", "priority"]),
    // Pure rooms.
    ("catalog", &["ids", "clock", "limits"]),
    ("config", &["catalog", "limits"]),
    (
        "ingest",
        &[
            "catalog",
            "clock",
            "error",
            "ids",
            "limits",
            "series",
            "timestamp",
        ],
    ),
    ("cluster", &[]),
    // The log and the rooms that depend on it.
    ("journal", &["catalog", "clock", "error", "ids", "limits"]),
    (
        "bucket",
        &[
            "catalog",
            "checked_file",
            "clock",
            "error",
            "ids",
            // For the series of a request.
            "ingest",
            "journal",
            "ledger",
            "limits",
            "pools",
            "priority",
            "sealed_file",
            "series",
        ],
    ),
    ("series", &["catalog", "ids", "ledger"]),
    ("ledger", &["catalog", "clock", "ids", "journal", "sealed_file"]),
    // `ingest` for its writer: points are shown in one form.
    (
        "delivery",
        &[
            "catalog",
            "clock",
            "error",
            "hex",
            "ids",
            "ingest",
            "journal",
            "limits",
            "random",
            "timestamp",
        ],
    ),
    ("alerts", &["catalog", "clock", "error", "ids", "journal"]),
    (
        "checkpoint",
        &[
            "bucket",
            "catalog",
            "checked_file",
            "clock",
            "config",
            "error",
            "ids",
            "journal",
            "ledger",
            "limits",
            "pools",
            "priority",
            "sealed_file",
            "series",
        ],
    ),
    (
        "service",
        &[
            "alerts",
            "bucket",
            "catalog",
            "checkpoint",
            "clock",
            "cluster",
            "config",
            "delivery",
            "error",
            "extents",
            "ids",
            "ingest",
            "journal",
            "ledger",
            "limits",
            "metrics",
            "priority",
            "query_pool",
            "random",
            "series",
            "timestamp",
        ],
    ),
    // `ingest` for its parsers: timestamps are read in one way by all endpoints.
    (
        "http",
        &[
            "catalog",
            "checkpoint",
            "clock",
            "config",
            "error",
            "extents",
            "hex",
            "ids",
            "ingest",
            "limits",
            "metrics",
            "open_files",
            "random",
            "series",
            "service",
            "timestamp",
        ],
    ),
    // Independent of the server: reads the files of the others.
    (
        "backup",
        &[
            "bucket",
            "check",
            "checked_file",
            "checkpoint",
            "clock",
            "hex",
            "ledger",
            "open_files",
            "priority",
            "progress",
            "sealed_file",
            "startup",
            "timestamp",
        ],
    ),
    ("extents", &["clock", "pools"]),
    // `backup` and `check` for pinned files, their verification, and empty directories.
    (
        "remote",
        &[
            "backup",
            "catalog",
            "check",
            "checked_file",
            "checkpoint",
            "clock",
            "extents",
            "priority",
            "progress",
            "random",
            "sealed_file",
            "timestamp",
        ],
    ),
    // Rooms that assemble the others may import all of them.
    ("check", ALL),
    ("startup", ALL),
    ("main", ALL),
    ("bridge_command", ALL),
    ("cluster_command", ALL),
    ("import_command", ALL),
    ("mcp_command", ALL),
    ("progress_bar", ALL),
    ("allocator", &[]),
    ("lib", ALL),
];

const ALL: &[&str] = &["*"];

/// Rooms of pure logic, without a runtime, files or a clock, so that every rule is tested without a server or a sleep.
const PURE: &[&str] = &[
    "src/catalog",
    "src/delivery/envelope.rs",
    "src/delivery/signature.rs",
    "src/ingest",
    "src/alerts/condition",
    "engine/src",
    "protocols/src",
    "importer/src/parts.rs",
    "src/limits.rs",
    "src/timestamp.rs",
    "src/hex.rs",
    "src/ids.rs",
    "evaluator/src/condition",
    "evaluator/src/backoff.rs",
    "bridge/src/batch.rs",
    "bridge/src/line.rs",
    "bridge/src/payload.rs",
    "bridge/src/timestamp.rs",
    "bridge/src/topic.rs",
    "mcp/src/answer.rs",
    "mcp/src/call.rs",
    "mcp/src/keys.rs",
    "mcp/src/tools.rs",
    "demo/src/plant",
];

const IMPURE: &[&str] = &[
    "actix",
    "tokio",
    "tracing",
    "std::fs",
    "std::net",
    "std::thread",
    "thread::",
    "SystemTime",
    "Instant::now",
    "async ",
    ".await",
];

#[test]
fn rooms_import_only_along_the_arrows() {
    let mut faults = Vec::new();
    for source in rust().iter().filter(|source| !source.is_test()) {
        let Some(room) = source.room() else { continue };
        let Some((_, allowed)) = ALLOWED_IMPORTS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!(
                "{}: the room `{room}` is not listed; add it to ALLOWED_IMPORTS",
                source.path
            ));
            continue;
        };
        let text = joined(source);
        let mut imported = names_behind(&text, "crate::");
        // Paths out of a room: as many `super::` as the file is deep, then another room's name.
        let depth = source.path.matches('/').count() - usize::from(source.path.ends_with("/mod.rs"));
        let rooms = ALLOWED_IMPORTS.iter().map(|(name, _)| *name);
        let upwards = names_behind(&text, &"super::".repeat(depth.max(1)));
        imported.extend(
            upwards
                .into_iter()
                .filter(|name| depth > 0 && rooms.clone().any(|room| room == name)),
        );
        for name in imported {
            let is_room = ALLOWED_IMPORTS.iter().any(|(room, _)| *room == name);
            if is_room && name != room && !allowed.contains(&name.as_str()) && *allowed != ALL {
                faults.push(format!("{}: `{room}` imports `{name}`", source.path));
            }
        }
    }
    assert_none(
        &faults,
        "design: http → service → {catalog, bucket, …} → journal → wal; rooms import along the arrows",
    );
}

#[test]
fn only_the_bucket_uses_the_store_and_only_the_journal_the_log() {
    let mut faults = Vec::new();
    for source in rust()
        .iter()
        .filter(|source| source.is_below("src") && !source.is_test())
    {
        let text = joined(source);
        if !source.is_below("src/bucket")
            && names_behind(&text, "engine::").iter().any(|name| name == "Store")
        {
            faults.push(format!("{}: holds the engine's Store", source.path));
        }
        let outside = ["src/http", "src/service", "src/catalog", "src/ingest"]
            .iter()
            .any(|room| source.is_below(room));
        if outside && has_word(&text, "wal::") {
            faults.push(format!("{}: reaches behind the journal to the log", source.path));
        }
        if source.is_below("src/http") && has_word(&text, "engine::") {
            faults.push(format!("{}: a handler must not use the engine", source.path));
        }
        if source.is_below("src/service") && has_word(&text, "actix_web") {
            faults.push(format!("{}: service is free of HTTP", source.path));
        }
    }
    assert_none(
        &faults,
        "design: bucket alone holds the engine's store; services are free of HTTP; the log is the journal's",
    );
}

/// Files of `service` with JSON that is not the API's.
const SERVICE_JSON: &[(&str, &str)] = &[
    ("src/service/tokens.rs", "the parts of a JWT are JSON"),
    ("src/service/audit/mod.rs", "the changes in the audit are JSON"),
    (
        "src/service/audit/described.rs",
        "the changes in the audit are JSON",
    ),
    ("src/service/audit/shown.rs", "the changes in the audit are JSON"),
    (
        "src/service/query/deletion.rs",
        "the filters in the audit are JSON",
    ),
    (
        "src/service/data/writers/mod.rs",
        "what an idempotency key keeps is JSON",
    ),
    ("src/service/data/imports/row.rs", "rows of exports are JSON"),
    ("src/service/triggers.rs", "evidence and webhook bodies are JSON"),
    ("src/service/query/mod.rs", "the metadata of points is JSON"),
    ("src/service/query/metadata.rs", "the metadata of points is JSON"),
];

#[test]
fn services_return_data_and_the_edge_writes_it() {
    let mut faults = Vec::new();
    let is_service = |source: &&Source| source.is_below("src/service") && !source.is_test();
    for source in rust().iter().filter(is_service) {
        let text = joined(source);
        let mut words = vec![
            "StatusCode",
            "write_number",
            "write_scalar",
            "write_string",
            "ToSchema",
        ];
        if !SERVICE_JSON.iter().any(|(path, _)| source.path == *path) {
            words.push("serde_json");
        }
        let found = words.into_iter().filter(|word| has_word(&text, word));
        faults.extend(found.map(|word| format!("{}: `{word}`", source.path)));
    }
    assert_none(
        &faults,
        "design: services know neither the JSON of the API nor its statuses; `src/http/write` has writers",
    );
}

#[test]
fn pure_rooms_have_no_runtime_no_files_and_no_clock() {
    let mut faults = Vec::new();
    for source in rust()
        .iter()
        .filter(|source| PURE.iter().any(|room| source.is_below(room)) && !source.is_test())
    {
        for (number, line) in source.code() {
            for word in IMPURE.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{}`", source.path, word.trim()));
            }
        }
    }
    for source in rust()
        .iter()
        .filter(|source| source.is_below("wal/src") && !source.is_test())
    {
        for (number, line) in source.code() {
            let words = [
                "SystemTime",
                "Instant::now",
                "thread::spawn",
                "thread::sleep",
                "actix",
                "tokio",
                "async ",
            ];
            for word in words.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{}`", source.path, word.trim()));
            }
        }
    }
    assert_none(
        &faults,
        "design: pure logic takes time, disk and randomness as arguments",
    );
}
