//! Determines which records of the log are already in the files, if there is no manifest that says so.
//!
//! For points: both records and segments contain the sequences of rows. For the catalog: a command that creates an
//! object with a new id is in the files if that id is. Commands after the last such command are applied again, which is
//! harmless for commands that only replace something.

use std::collections::{BTreeMap, HashSet};
use wal::Sequence;

use super::log;
use crate::catalog::{Catalog, Command, Stream};
use crate::checkpoint::{DataDir, message};
use crate::ids::ObjectId;
use crate::journal::{Record, RecordError};
use crate::ledger::{Run, verify};

/// The contents of the log's records, as far as they can be found in files.
#[derive(Default)]
pub(super) struct Evidence {
    /// Record, first row, and end of its rows (exclusive), by bucket.
    ingests: BTreeMap<u32, Vec<(Sequence, u64, u64)>>,
    commands: Vec<(Sequence, Trace)>,
}

/// The trace that a command leaves in the files.
enum Trace {
    /// Objects of the catalog.
    Objects(Vec<ObjectId>),
    /// Entries of histories, and their deliveries.
    Entries(Vec<ObjectId>),
    /// An object was deleted.
    Deleted(ObjectId),
}

impl Trace {
    fn of(command: &Command) -> Option<Self> {
        Some(match command {
            Command::Audited { command, .. } => return Self::of(command),
            Command::SignedUp { organization, user } => Self::Objects(vec![organization.id, user.id]),
            Command::KeyCreated { key } => Self::Objects(vec![key.id]),
            Command::BucketCreated { bucket } => Self::Objects(vec![bucket.id]),
            Command::SourceCreated { source } => Self::Objects(vec![source.id]),
            Command::RuleCreated { rule } => Self::Objects(vec![rule.id]),
            Command::WebhookCreated { webhook } => Self::Objects(vec![webhook.id]),
            Command::VerdictRecorded { verdict } => Self::Entries(vec![verdict.id]),
            Command::DeliveriesQueued { deliveries } => {
                Self::Entries(deliveries.iter().map(|delivery| delivery.id).collect())
            }
            Command::KeyDeleted { key_id } => Self::Deleted(*key_id),
            Command::BucketDeleted { bucket_id } => Self::Deleted(*bucket_id),
            Command::SourceDeleted { source_id } => Self::Deleted(*source_id),
            Command::RuleDeleted { rule_id } => Self::Deleted(*rule_id),
            Command::WebhookDeleted { webhook_id } => Self::Deleted(*webhook_id),
            _ => return None,
        })
    }
}

impl Evidence {
    /// Reads the carried records, and the log after `before`.
    pub(super) fn read(dir: &DataDir, before: Sequence) -> Result<Self, String> {
        let mut found = Self::default();
        log::read(dir, before, &mut |sequence, bytes| found.add(sequence, bytes))?;
        Ok(found)
    }

    fn add(&mut self, sequence: Sequence, bytes: &[u8]) -> Result<(), RecordError> {
        match Record::decode(bytes)? {
            Record::Ingest(ingest) => {
                let end = ingest.first_sequence + u64::from(ingest.rows);
                let ingests = self.ingests.entry(ingest.bucket).or_default();
                ingests.push((sequence, ingest.first_sequence, end));
            }
            Record::Command(command) => {
                self.commands
                    .extend(Trace::of(&command).map(|trace| (sequence, trace)));
            }
        }
        Ok(())
    }

    /// Returns the record up to which a bucket's rows precede `next_row`, so that the segments hold them; and the end
    /// of the rows in its records (exclusive). A checkpoint takes whole records in order: if the first row of a record
    /// is in a segment, all its rows are.
    pub(super) fn of_bucket(&self, bucket: u32, before: Sequence, next_row: u64) -> (Sequence, u64) {
        let records = self.ingests.get(&bucket).map_or(&[][..], Vec::as_slice);
        let covered = records.iter().filter(|(_, first, _)| *first < next_row);
        let covered = covered.map(|(sequence, ..)| *sequence).max().unwrap_or(0);
        let next_in_log = records.iter().map(|(.., end)| *end).max().unwrap_or(0);
        (covered.max(before), next_in_log)
    }

    /// The record up to which the catalog in these runs includes the commands of the log.
    pub(super) fn of_catalog(
        &self,
        dir: &DataDir,
        runs: &[u64],
        catalog: &Catalog,
    ) -> Result<Sequence, String> {
        let seen = self.seen(dir, runs)?;
        let created: HashSet<ObjectId> = self.created().collect();
        let is_there = |id: &ObjectId| seen.contains(id) || catalog.source(*id).is_some();
        let in_files = self.commands.iter().filter(|(_, trace)| match trace {
            Trace::Objects(ids) | Trace::Entries(ids) => ids.iter().any(is_there),
            // Created before the log begins, and deleted.
            Trace::Deleted(id) => !created.contains(id) && !is_there(id),
        });
        let last = in_files.map(|(sequence, _)| *sequence).max().unwrap_or(0);
        // Runs of an interrupted checkpoint may hold later entries than its catalog.
        let first_missing = self.commands.iter().find_map(|(sequence, trace)| match trace {
            Trace::Objects(ids) if !ids.iter().any(is_there) && !self.deletes_within(*sequence, last) => {
                Some(*sequence)
            }
            _ => None,
        });
        Ok(first_missing.map_or(last, |missing| last.min(missing - 1)))
    }

    /// How many commands after this record create objects.
    pub(super) fn objects_behind(&self, sequence: Sequence) -> usize {
        let creates = |(at, trace): &&(Sequence, Trace)| *at > sequence && matches!(trace, Trace::Objects(_));
        self.commands.iter().filter(creates).count()
    }

    fn deletes_within(&self, after: Sequence, until: Sequence) -> bool {
        let within = |at: &Sequence| (after..=until).contains(at);
        let mut commands = self.commands.iter();
        commands.any(|(at, trace)| within(at) && matches!(trace, Trace::Deleted(_)))
    }

    /// Ids that commands create.
    fn created(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.commands.iter().flat_map(|(_, trace)| {
            match trace {
                Trace::Objects(ids) | Trace::Entries(ids) => ids.as_slice(),
                Trace::Deleted(_) => &[],
            }
            .iter()
            .copied()
        })
    }

    /// The ids of commands that occur in the files, whether or not their objects have been deleted since.
    fn seen(&self, dir: &DataDir, runs: &[u64]) -> Result<HashSet<ObjectId>, String> {
        let wanted: HashSet<ObjectId> = self.created().collect();
        let deleted = self.commands.iter().filter_map(|(_, trace)| match trace {
            Trace::Deleted(id) => Some(*id),
            _ => None,
        });
        let deleted: HashSet<ObjectId> = deleted.collect();
        let runs_dir = dir.layout.runs_dir();
        let mut seen = HashSet::new();
        for id in runs {
            let run = Run::open_file(dir.disk(), &runs_dir, *id).map_err(message)?;
            if run.stream == Stream::Answers {
                continue;
            }
            let read = verify(&run, |item| {
                let id = item.key.id;
                // For objects created before the log begins, only the newest version tells whether they still exist.
                if wanted.contains(&id) || deleted.contains(&id) && !item.payload.is_empty() {
                    seen.insert(id);
                } else if deleted.contains(&id) {
                    seen.remove(&id);
                }
            });
            read.map_err(message)?;
        }
        Ok(seen)
    }
}
