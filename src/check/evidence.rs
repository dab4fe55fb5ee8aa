//! Determines which records of the log are already in the files, if there is no manifest that says so.
//!
//! For points: both records and segments contain the sequences of rows. For the catalog: a command that creates an
//! object with a new id is in the files if that id is. Commands after the last such command are applied again, which is
//! harmless for commands that only replace something.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use disk::Disk;
use wal::Sequence;

use super::log;
use crate::catalog::{Catalog, Command, Stream};
use crate::checkpoint::Layout;
use crate::ids::ObjectId;
use crate::journal::{Record, RecordError};
use crate::ledger::{LedgerDir, for_each_sound};

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
    Gone(ObjectId),
}

impl Trace {
    fn of(command: &Command) -> Option<Self> {
        Some(match command {
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
            Command::KeyDeleted { key_id } => Self::Gone(*key_id),
            Command::BucketDeleted { bucket_id } => Self::Gone(*bucket_id),
            Command::SourceDeleted { source_id } => Self::Gone(*source_id),
            Command::RuleDeleted { rule_id } => Self::Gone(*rule_id),
            Command::WebhookDeleted { webhook_id } => Self::Gone(*webhook_id),
            _ => return None,
        })
    }
}

impl Evidence {
    /// Reads the log after `before`.
    pub(super) fn read(disk: &Arc<dyn Disk>, layout: &Layout, before: Sequence) -> Result<Self, String> {
        let mut found = Self::default();
        let mut replay = |sequence: Sequence, bytes: &[u8]| {
            found.add(sequence, bytes)?;
            Ok::<_, RecordError>(())
        };
        log::read(disk, layout, before, &mut replay)?;
        Ok(found)
    }

    fn add(&mut self, sequence: Sequence, bytes: &[u8]) -> Result<(), RecordError> {
        match Record::decode(bytes)? {
            Record::Ingest(ingest) => {
                let (first, end) = (
                    ingest.first_sequence,
                    ingest.first_sequence + u64::from(ingest.rows),
                );
                self.ingests
                    .entry(ingest.bucket)
                    .or_default()
                    .push((sequence, first, end));
            }
            Record::Command(command) => {
                self.commands
                    .extend(Trace::of(&command).map(|trace| (sequence, trace)));
            }
        }
        Ok(())
    }

    /// Adds carried records, which precede those of the log.
    pub(super) fn add_carried(&mut self, records: &[(Sequence, Vec<u8>)]) -> Result<(), String> {
        let mut carried = Self::default();
        for (sequence, bytes) in records {
            let added = carried.add(*sequence, bytes);
            added.map_err(|error| format!("record {sequence}: {error}"))?;
        }
        for (bucket, mut ingests) in carried.ingests {
            let all = self.ingests.entry(bucket).or_default();
            ingests.append(all);
            ingests.sort_unstable();
            *all = ingests;
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
        disk: &dyn Disk,
        layout: &Layout,
        runs: &[u64],
        catalog: &Catalog,
    ) -> Result<Sequence, String> {
        let seen = self.seen(disk, layout, runs)?;
        let made: HashSet<ObjectId> = self.made().map(|(id, _)| id).collect();
        let is_there = |id: &ObjectId| seen.contains(id) || catalog.source(*id).is_some();
        let in_files = self.commands.iter().filter(|(_, trace)| match trace {
            Trace::Objects(ids) | Trace::Entries(ids) => ids.iter().any(is_there),
            // Created before the log begins, and deleted.
            Trace::Gone(id) => !made.contains(id) && !is_there(id),
        });
        let last = in_files.map(|(sequence, _)| *sequence).max().unwrap_or(0);
        // Runs of an interrupted checkpoint may hold later entries than its catalog.
        let first_missing = self.commands.iter().find_map(|(sequence, trace)| match trace {
            Trace::Objects(ids) if !ids.iter().any(is_there) && !self.anything_goes(*sequence, last) => {
                Some(*sequence)
            }
            _ => None,
        });
        Ok(first_missing.map_or(last, |missing| last.min(missing - 1)))
    }

    /// How many commands after this record create objects.
    pub(super) fn objects_behind(&self, sequence: Sequence) -> usize {
        let behind = self.commands.iter().filter(|(at, _)| *at > sequence);
        behind
            .filter(|(_, trace)| matches!(trace, Trace::Objects(_)))
            .count()
    }

    fn anything_goes(&self, after: Sequence, until: Sequence) -> bool {
        let within = self
            .commands
            .iter()
            .filter(|(at, _)| (after..=until).contains(at));
        within
            .into_iter()
            .any(|(_, trace)| matches!(trace, Trace::Gone(_)))
    }

    /// Ids that commands create, with the record that creates them.
    fn made(&self) -> impl Iterator<Item = (ObjectId, Sequence)> + '_ {
        self.commands.iter().flat_map(|(sequence, trace)| {
            let ids: &[ObjectId] = match trace {
                Trace::Objects(ids) | Trace::Entries(ids) => ids,
                Trace::Gone(_) => &[],
            };
            ids.iter().map(|id| (*id, *sequence))
        })
    }

    /// The ids of commands that occur in the files, whether or not their objects have been deleted since.
    fn seen(&self, disk: &dyn Disk, layout: &Layout, runs: &[u64]) -> Result<HashSet<ObjectId>, String> {
        let wanted: HashMap<ObjectId, Sequence> = self.made().collect();
        let gone = self.commands.iter().filter_map(|(_, trace)| match trace {
            Trace::Gone(id) => Some(*id),
            _ => None,
        });
        let gone: HashSet<ObjectId> = gone.collect();
        let dir = LedgerDir::of(&layout.data_dir);
        // For objects created before the log begins, only the newest version tells whether they still exist.
        let mut newest: HashMap<ObjectId, bool> = HashMap::new();
        for id in runs {
            let run = dir.open(disk, *id).map_err(|error| error.to_string())?;
            if run.stream() == Stream::Answers {
                continue;
            }
            let read = for_each_sound(&run, |place, payload| {
                if wanted.contains_key(&place.id) {
                    newest.insert(place.id, true);
                } else if gone.contains(&place.id) {
                    newest.insert(place.id, !payload.is_empty());
                }
            });
            read.map_err(|error| error.to_string())?;
        }
        Ok(newest
            .into_iter()
            .filter_map(|(id, there)| there.then_some(id))
            .collect())
    }
}
