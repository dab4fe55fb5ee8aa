//! Deletes old roots, and objects that no kept root names. Ages are differences between the store's own times: that of
//! the newest object, which was stored a moment ago, and that of the object in question. Names that this room does not
//! give are never touched.

use std::collections::{BTreeSet, HashMap, HashSet};

use objects::{Listed, ObjectStore};

use super::error::RemoteError;
use super::names::{Epoch, FileName, Object, RootName, ShardNames};
use super::root::{ROOT_BYTES_MAX, Root};
use crate::clock::{DAY_NS, HOUR_NS};

/// What is younger is never deleted.
const AGE_MIN_NS: i64 = DAY_NS;
/// Roots that are kept whatever their age.
const ROOTS_MIN: usize = 10;
/// Time between two runs.
const PERIOD_NS: i64 = HOUR_NS;
/// Objects that a run deletes at most. A server that publishes every ten seconds adds about as many in an hour.
const DELETIONS_MAX: usize = 5_000;
/// Roots that a run reads at most, to learn what they name. Those of this process are known.
const READS_MAX: usize = 500;
/// Objects deleted with one call.
const BATCH: usize = 500;
/// A root that will be swept within this time is not built upon.
const MARGIN_NS: i64 = HOUR_NS;

/// When the last run was, and what is known of the roots.
#[derive(Default)]
pub(super) struct Sweeper {
    swept_at_ns: Option<i64>,
    named: HashMap<RootName, Vec<FileName>>,
    warned: bool,
}

/// The result of a run.
pub(super) struct Swept {
    pub(super) deleted: u64,
    /// The objects that were there, with their lengths.
    pub(super) present: HashMap<String, u64>,
}

/// What a list shows to be old.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Roots that are kept.
    kept: BTreeSet<RootName>,
    /// Roots that are not.
    roots: Vec<RootName>,
    /// Objects with files that are old enough, if no kept root names them.
    files: Vec<FileName>,
    /// Markers of epochs that are over.
    epochs: Vec<Epoch>,
}

/// When the newest object was stored.
fn newest_ns(listed: &[Listed]) -> i64 {
    listed.iter().map(|object| object.stored_at_ns).max().unwrap_or(0)
}

/// The kept ones of these roots: the last ones, and all of the last day.
fn kept_roots(mut roots: Vec<(RootName, i64)>, newest_ns: i64, age_ns: i64) -> BTreeSet<RootName> {
    roots.sort_unstable();
    let last = roots.len().saturating_sub(ROOTS_MIN);
    let of_age = |stored_at_ns: i64| newest_ns.saturating_sub(stored_at_ns) < age_ns;
    let kept = roots.iter().enumerate();
    kept.filter(|(index, (_, stored_at_ns))| *index >= last || of_age(*stored_at_ns))
        .map(|(_, (root, _))| *root)
        .collect()
}

/// Whether a root is in this list of roots, and will be kept for a while.
pub(super) fn is_kept(names: ShardNames, listed: &[Listed], root: RootName) -> bool {
    let roots = listed
        .iter()
        .filter_map(|object| match names.parse(&object.name)? {
            Object::Root(root) => Some((root, object.stored_at_ns)),
            _ => None,
        });
    kept_roots(roots.collect(), newest_ns(listed), AGE_MIN_NS - MARGIN_NS).contains(&root)
}

/// Sorts a shard's objects into what is kept and what is old. Changes nothing.
fn plan(names: ShardNames, listed: &[Listed], own: Epoch) -> Plan {
    let newest_ns = newest_ns(listed);
    let (mut plan, mut roots) = (Plan::default(), Vec::new());
    let mut highest = own;
    for object in listed {
        let is_old = newest_ns.saturating_sub(object.stored_at_ns) >= AGE_MIN_NS;
        match names.parse(&object.name) {
            Some(Object::Root(root)) => roots.push((root, object.stored_at_ns)),
            Some(Object::File(file)) if is_old => plan.files.push(file),
            Some(Object::Epoch(epoch)) => {
                highest = highest.max(epoch);
                if is_old {
                    plan.epochs.push(epoch);
                }
            }
            Some(Object::File(_)) | None => {}
        }
    }
    // Without the highest one, the next writer would take it again.
    plan.epochs.retain(|epoch| *epoch < highest);
    plan.kept = kept_roots(roots.clone(), newest_ns, AGE_MIN_NS);
    let is_gone = |(root, _): &(RootName, i64)| !plan.kept.contains(root);
    plan.roots = roots.into_iter().filter(is_gone).map(|(root, _)| root).collect();
    plan
}

fn files_of(names: ShardNames, root: &Root) -> Vec<FileName> {
    let objects = root.files.iter().map(|file| names.parse(&file.object));
    objects
        .filter_map(|object| match object {
            Some(Object::File(file)) => Some(file),
            _ => None,
        })
        .collect()
}

impl Sweeper {
    /// A root was stored by this process.
    pub(super) fn published(&mut self, names: ShardNames, name: RootName, root: &Root) {
        self.named.insert(name, files_of(names, root));
    }

    /// Deletes what is old; returns `None` if that was done recently, or is for another writer to do.
    ///
    /// # Errors
    /// The store fails, or a kept root does not read: then it is not known what it names, and no file is deleted.
    pub(super) fn run(
        &mut self,
        store: &dyn ObjectStore,
        names: ShardNames,
        own: Epoch,
        now_ns: i64,
    ) -> Result<Option<Swept>, RemoteError> {
        if self.swept_at_ns.is_some_and(|swept| now_ns - swept < PERIOD_NS) {
            return Ok(None);
        }
        self.swept_at_ns = Some(now_ns);
        let listed = store.list(&names.all())?;
        if super::epoch::highest(names, &listed) > own {
            if !self.warned {
                self.warned = true;
                tracing::warn!(
                    "another server publishes to the same object store; give each server a prefix of its own"
                );
            }
            // It deletes what is old.
            return Ok(None);
        }
        let plan = plan(names, &listed, own);
        self.named.retain(|root, _| plan.kept.contains(root));
        let mut deleted = 0;
        let mut roots = plan.roots;
        roots.truncate(DELETIONS_MAX);
        deleted += self.delete(store, names, roots.into_iter().map(Object::Root))?;
        deleted += self.delete(store, names, plan.epochs.into_iter().map(Object::Epoch))?;
        if !plan.files.is_empty() && self.read(store, names, &plan.kept)? {
            let named: HashSet<FileName> = self.named.values().flatten().copied().collect();
            let files = plan.files.into_iter().filter(|file| !named.contains(file));
            let files = files.take(DELETIONS_MAX).map(Object::File);
            deleted += self.delete(store, names, files)?;
        }
        let present = listed.into_iter().map(|object| (object.name, object.bytes));
        Ok(Some(Swept {
            deleted,
            present: present.collect(),
        }))
    }

    /// Reads the roots that are not known yet. Returns whether all are known now.
    fn read(
        &mut self,
        store: &dyn ObjectStore,
        names: ShardNames,
        kept: &BTreeSet<RootName>,
    ) -> Result<bool, RemoteError> {
        let mut reads = 0;
        for root in kept.iter().rev() {
            if self.named.contains_key(root) {
                continue;
            }
            if reads == READS_MAX {
                return Ok(false);
            }
            reads += 1;
            let bytes = store.get(&names.name(Object::Root(*root)), ROOT_BYTES_MAX)?;
            let read = Root::decode(&root.to_string(), &bytes)?;
            self.named.insert(*root, files_of(names, &read));
        }
        Ok(true)
    }

    fn delete(
        &self,
        store: &dyn ObjectStore,
        names: ShardNames,
        objects: impl Iterator<Item = Object>,
    ) -> Result<u64, RemoteError> {
        let objects: Vec<String> = objects.map(|object| names.name(object)).collect();
        objects.chunks(BATCH).try_for_each(|batch| store.delete(batch))?;
        Ok(objects.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: ShardNames = ShardNames(0);

    fn listed(object: Object, age_hours: i64) -> Listed {
        Listed {
            name: NAMES.name(object),
            bytes: 1,
            stored_at_ns: 1_000 * HOUR_NS - age_hours * HOUR_NS,
        }
    }

    fn root(number: u64) -> RootName {
        RootName { epoch: 2, number }
    }

    #[test]
    fn the_last_roots_and_those_of_a_day_are_kept() {
        // One root an hour.
        let roots: Vec<_> = (1..=48)
            .map(|number| listed(Object::Root(root(number)), 48 - number as i64))
            .collect();
        let planned = plan(NAMES, &roots, 2);
        assert_eq!(planned.kept.first(), Some(&root(25)));
        assert_eq!(planned.roots.len(), 24);
        assert!(is_kept(NAMES, &roots, root(26)) && !is_kept(NAMES, &roots, root(25)));
        assert!(!is_kept(NAMES, &roots, root(49)));
        // One root a week.
        let roots: Vec<_> = (1..=48)
            .map(|number| listed(Object::Root(root(number)), (48 - number as i64) * 7 * 24))
            .collect();
        assert_eq!(plan(NAMES, &roots, 2).kept.first(), Some(&root(39)));
    }

    #[test]
    fn young_objects_the_highest_epoch_and_other_names_stay() {
        let file = |number| {
            Object::File(FileName {
                epoch: 1,
                number,
                kind: super::super::names::Kind::Run,
            })
        };
        let mut all = vec![
            listed(file(1), 24),
            listed(file(2), 23),
            listed(Object::Epoch(1), 100),
            listed(Object::Epoch(2), 90),
            listed(Object::Root(root(1)), 0),
        ];
        all.push(Listed {
            name: "shards/00000/files/mine.txt".to_owned(),
            ..listed(file(3), 1_000)
        });
        let planned = plan(NAMES, &all, 2);
        let Object::File(old) = file(1) else {
            unreachable!()
        };
        assert_eq!(planned.files, [old]);
        assert_eq!(planned.epochs, [1]);
        assert_eq!(planned.roots, []);
    }
}
