//! Creates a catalog for points whose catalog is lost for good, without a backup. The points still exist, and contain
//! the numbers of their bucket, source and field. Everything else is invented.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use engine::{
    Cache, FieldKind, SERIES_ORDINALS_FROM, SegmentFile, SegmentPart, SegmentWriter, source_of_ends,
};
use wal::Sequence;

use super::rebuild::{opened, rebuild};
use super::{Say, flips, ledger, log};
use crate::bucket::BucketState;
use crate::catalog::{
    Catalog, Command, Field, FieldType, Frozen, FrozenTail, NewBucket, NewSource, Organization, PasswordHash,
    Plan, SchemaMode, SourceSettings, SourceStatus, User,
};
use crate::checkpoint::{DataDir, Manifest, ManifestError, message, shared};
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::Record;
use crate::ledger::{Keep, Ledger, LedgerFiles, NewEntry};
use crate::limits::RETENTION_DAYS_MAX;

/// The owner of the adopted points.
pub(super) struct Owner {
    pub email: String,
    pub password: PasswordHash,
}

/// Fields by source and number.
type Fields = BTreeMap<u32, BTreeMap<u16, FieldKind>>;

/// Creates a catalog of one organization, with a bucket, sources and fields for all existing points, and a manifest
/// with it. Returns whether that was done. Does nothing if the catalog loads.
pub(super) fn adopt(dir: &DataDir, owner: &Owner, now_ns: i64, say: &mut Say<'_>) -> Result<bool, String> {
    flips::correct(dir, say)?;
    let manifest = match Manifest::read(dir.disk(), dir.path()) {
        Err(error @ ManifestError::Newer(_)) => return Err(error.to_string()),
        read => read.ok().flatten(),
    };
    if manifest.is_some_and(|manifest| ledger::load(dir, &manifest.runs).is_ok()) {
        say("nothing: the catalog exists and loads".to_owned());
        return Ok(false);
    }
    let before = log::begins_behind(dir)?;
    let Some(last) = log::repair(dir, before, say)? else {
        return Ok(false);
    };
    let mut buckets = buckets(dir, before, say)?;
    let series = take_series(&mut buckets);
    if series > 0 {
        say(format!(
            "{series} series of data sources with dimensions are not adopted: which data sources they belong to was in the \
             ledger; their points stay in the segments only until the next merge"
        ));
    }
    let catalog = catalog(&buckets, owner, now_ns)?;
    set_runs_aside(dir, say)?;
    save(dir, &catalog.freeze(), now_ns)?;
    let Some(mut manifest) = rebuild(dir, before, say)? else {
        return Ok(false);
    };
    // The old catalog's commands in the log do not apply to this one.
    manifest.catalog_covered = last;
    dir.write_manifest(&manifest)?;
    say(format!(
        "the catalog: created for {}, with {} buckets and {} sources under generated names; rules, webhooks, keys \
         and other users are lost, and recently deleted points may have reappeared",
        owner.email,
        buckets.len(),
        buckets.values().map(BTreeMap::len).sum::<usize>()
    ));
    Ok(true)
}

/// Finds the buckets, sources and fields of the points in segments, carried records and the log.
fn buckets(dir: &DataDir, before: Sequence, say: &mut Say<'_>) -> Result<BTreeMap<u32, Fields>, String> {
    let mut buckets: BTreeMap<u32, Fields> = BTreeMap::new();
    let segments = dir.layout.segments_dir();
    for id in dir.list(&segments)?.ids {
        let path = segments.file_path(id);
        let mut messages = Vec::new();
        let (_, file, _) = opened(id, shared(dir.map(&path)?), &path, &mut messages)?;
        messages.into_iter().for_each(&mut *say);
        for bucket in file.parts().map(|part| part.bucket).collect::<Vec<_>>() {
            add(&mut buckets, &file, bucket)?;
        }
    }
    let mut unsaved: BTreeMap<u32, BucketState> = BTreeMap::new();
    let mut apply = |sequence: Sequence, bytes: &[u8]| {
        if let Record::Ingest(ingest) = Record::decode(bytes).map_err(message)? {
            let state = match unsaved.entry(ingest.bucket) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(vacant) => {
                    let state = BucketState::new(ingest.bucket, Cache::new(0), Ledger::default());
                    vacant.insert(state.map_err(message)?)
                }
            };
            state.apply(sequence, &ingest).map_err(message)?;
        }
        Ok::<_, String>(())
    };
    log::read(dir, before, &mut apply)?;
    for (bucket, mut state) in unsaved {
        let Some(checkpoint) = state.store.begin_checkpoint() else {
            continue;
        };
        let written =
            SegmentWriter::of_bucket(bucket, |segment| checkpoint.write(segment)).map_err(message)?;
        let file = SegmentFile::open(0, Arc::new(written)).map_err(message)?;
        add(&mut buckets, &file, bucket)?;
    }
    Ok(buckets)
}

/// Removes the series of sources that are split by dimensions, and ends of series; returns the number of the former.
fn take_series(buckets: &mut BTreeMap<u32, Fields>) -> usize {
    let series = buckets.values_mut().map(|sources| {
        let series = sources.split_off(&SERIES_ORDINALS_FROM).len();
        sources.retain(|ordinal, _| source_of_ends(*ordinal).is_none());
        series
    });
    series.sum()
}

fn add(buckets: &mut BTreeMap<u32, Fields>, file: &Arc<SegmentFile>, bucket: u32) -> Result<(), String> {
    let part = file.part(bucket).map_err(message)?;
    let fields = part.as_ref().map(SegmentPart::fields).transpose();
    let known = buckets.entry(bucket).or_default();
    for (source, fields) in fields.map_err(message)?.unwrap_or_default() {
        known.entry(source).or_default().extend(fields);
    }
    Ok(())
}

/// Creates the catalog of the buckets found. Ordinals are assigned in order, so buckets and sources are created for
/// unused ordinals, too, and deleted again.
fn catalog(buckets: &BTreeMap<u32, Fields>, owner: &Owner, now_ns: i64) -> Result<Catalog, String> {
    let ids = ObjectIds::new().map_err(message)?;
    let id = || ids.next(now_ns);
    let organization = Organization {
        id: id(),
        name: "Adopted".into(),
        // Whatever the retention was, nothing must expire before the operator has looked at it.
        plan: Plan::Enterprise,
        invitations: Vec::new(),
        created_at_ns: now_ns,
        updated_at_ns: now_ns,
    };
    let organization_id = organization.id;
    let user = User::new(
        id(),
        organization_id,
        owner.email.as_str(),
        owner.email.as_str(),
        owner.password.clone(),
        now_ns,
    );
    let mut catalog = Catalog::default();
    catalog.apply(&Command::SignedUp { organization, user });
    let last = buckets.keys().next_back().copied().unwrap_or(0);
    while catalog.last_bucket_ordinal() < last {
        let bucket_id = id();
        let ordinal = catalog.last_bucket_ordinal() + 1;
        let bucket = NewBucket {
            id: bucket_id,
            organization_id,
            name: format!("bucket-{ordinal}").into(),
            description: None,
            retention_days: RETENTION_DAYS_MAX,
            created_at_ns: now_ns,
        };
        catalog.apply(&Command::BucketCreated { bucket });
        match buckets.get(&ordinal) {
            Some(sources) => add_sources(&mut catalog, bucket_id, sources, now_ns, &id),
            None => catalog.apply(&Command::BucketDeleted { bucket_id }),
        }
    }
    Ok(catalog)
}

fn add_sources(
    catalog: &mut Catalog,
    bucket_id: ObjectId,
    sources: &Fields,
    now_ns: i64,
    id: &dyn Fn() -> ObjectId,
) {
    let last = sources.keys().next_back().copied().unwrap_or(0);
    for ordinal in 0..=last {
        let source_id = id();
        let fields = sources.get(&ordinal);
        let source = NewSource {
            id: source_id,
            bucket_id,
            settings: settings(ordinal, fields),
            metric_type: None,
            created_at_ns: now_ns,
        };
        catalog.apply(&Command::SourceCreated { source });
        if fields.is_none() {
            catalog.apply(&Command::SourceDeleted { source_id });
        }
    }
}

fn settings(ordinal: u32, fields: Option<&BTreeMap<u16, FieldKind>>) -> SourceSettings {
    let last = fields.and_then(|fields| fields.keys().next_back().copied());
    let field = |number: u16| {
        let kind = fields.and_then(|fields| fields.get(&number));
        Field {
            name: format!("field{number}").into(),
            kind: match kind {
                Some(FieldKind::Boolean) => FieldType::Boolean,
                Some(FieldKind::String) => FieldType::String,
                // A field without values may have any type.
                Some(FieldKind::Number) | None => FieldType::Number,
            },
            unit: None,
            description: None,
        }
    };
    SourceSettings {
        name: format!("source-{ordinal}").into(),
        kind: "adopted".into(),
        description: None,
        fields: last.map_or_else(Vec::new, |last| (0..=last).map(field).collect()),
        schema_mode: SchemaMode::Extend,
        downsampling: false,
        status: SourceStatus::Active,
        dimensions: None,
        duplicates: Default::default(),
        expected_interval_seconds: None,
    }
}

/// Moves the runs to other names: they belong to the lost catalog or to its objects.
fn set_runs_aside(dir: &DataDir, say: &mut Say<'_>) -> Result<(), String> {
    let runs_dir = dir.layout.runs_dir();
    let ids = dir.list(&runs_dir)?.ids;
    let runs: Vec<PathBuf> = ids.into_iter().map(|id| runs_dir.file_path(id)).collect();
    for path in &runs {
        let aside = dir.keep_aside(path)?;
        say(format!("{} is kept as {}", path.display(), aside.display()));
    }
    dir.remove_all(&runs)
}

/// Writes the catalog as a run.
fn save(dir: &DataDir, catalog: &Frozen, now_ns: i64) -> Result<(), String> {
    let objects = NewEntry::changes(catalog, &Frozen::default()).map_err(message)?;
    let mut files = LedgerFiles::open(dir.disk.clone(), dir.path(), &[]).map_err(message)?;
    let keep = Keep::new(HashSet::new(), now_ns);
    let saved = files.save(&FrozenTail::default(), objects.iter().collect(), &keep);
    saved.map(drop).map_err(message)
}
