//! The groups of an export, in windows of steps.

use engine::query::Wanted;

use super::super::grouped::GroupPage;
use super::super::result::QueryResult;
use super::super::{Answer, Grouping, PIECE_BYTES};
use super::{Shared, WriteExport};
use crate::bucket::IndexedView;
use crate::error::{ErrorKind, ServiceError};
use crate::query_pool::Stop;

/// Groups of the first window.
const GROUPS_FIRST: usize = 1_024;
/// Groups of a window, at most.
const GROUPS_MAX: usize = 1 << 16;
/// Divisor for the number of groups of a window if they exceed the memory limit.
const FEWER_GROUPS: usize = 8;

/// How many of the groups are written.
pub(super) struct GroupsProgress {
    grouping: Grouping,
    /// Number of groups written.
    written: usize,
    /// Start of the last group written, and the number of groups written with the same start.
    last: Option<(i64, usize)>,
    /// Number of groups to compute next.
    next_groups: usize,
    is_at_end: bool,
}

/// What was written of a window.
struct WrittenGroups {
    groups: usize,
    last_start_ns: Option<i64>,
    /// Number of groups written that start as the last one does.
    at_last_start: usize,
    is_at_end: bool,
}

impl GroupsProgress {
    pub(super) fn new(grouping: Grouping) -> Self {
        GroupsProgress {
            grouping,
            written: 0,
            last: None,
            next_groups: GROUPS_FIRST,
            is_at_end: false,
        }
    }

    fn add(&mut self, written: &WrittenGroups) {
        self.written += written.groups;
        self.is_at_end = written.is_at_end;
        if let Some(start_ns) = written.last_start_ns {
            let before = self.last.filter(|(last_ns, _)| *last_ns == start_ns);
            let before = before.map_or(0, |(_, groups)| groups);
            self.last = Some((start_ns, before + written.at_last_start));
        }
    }

    /// The next window. Filled rows are counted from the first; others begin with the step of the last one written, so
    /// that nothing is kept of what comes before.
    fn page(&self, is_filled: bool, descending: bool) -> GroupPage {
        let (starts_ns, offset) = match self.last {
            _ if is_filled => (Wanted::ALL.starts_ns, self.written),
            None => (Wanted::ALL.starts_ns, 0),
            Some((start_ns, groups)) if descending => ((i64::MIN, start_ns), groups),
            Some((start_ns, groups)) => ((start_ns, i64::MAX), groups),
        };
        GroupPage {
            starts_ns,
            offset,
            limit: self.next_groups,
        }
    }
}

impl Shared {
    /// Writes groups until the answer is full. Returns whether there are no more.
    pub(super) fn write_groups(
        &self,
        progress: &mut GroupsProgress,
        writer: &mut dyn WriteExport,
        answer: &mut Answer<'_>,
        stop: &Stop,
    ) -> Result<bool, ServiceError> {
        let input = &self.plan.input;
        let bytes_at_first = answer.len();
        while !answer.is_full() && !progress.is_at_end {
            let page = progress.page(input.fill.is_some(), input.descending);
            let (indexed, bytes_before) = (self.indexed.as_ref(), answer.len());
            let mut is_computed = false;
            let written = self.write_window(indexed, &progress.grouping, page, stop, |rows| {
                is_computed = true;
                writer.write(rows, answer)
            });
            match written {
                Ok(written) => {
                    let groups = written.groups;
                    progress.add(&written);
                    let bytes = answer.len() - bytes_before;
                    let fitting = groups.saturating_mul(PIECE_BYTES) / bytes.max(1);
                    progress.next_groups = fitting.clamp(1, page.limit.saturating_mul(2).min(GROUPS_MAX));
                }
                Err(error) if error.kind == ErrorKind::Validation && !is_computed && page.limit > 1 => {
                    progress.next_groups = (page.limit / FEWER_GROUPS).max(1);
                }
                Err(error) if error.kind == ErrorKind::Unavailable && answer.len() > bytes_at_first => break,
                Err(error) => return Err(error),
            }
        }
        Ok(progress.is_at_end)
    }

    fn write_window(
        &self,
        indexed: Option<&IndexedView>,
        grouping: &Grouping,
        page: GroupPage,
        stop: &Stop,
        write: impl FnOnce(&QueryResult<'_>) -> Result<usize, ServiceError>,
    ) -> Result<WrittenGroups, ServiceError> {
        self.plan
            .groups(indexed, &self.found, grouping, page, stop, |groups| {
                let result = QueryResult::Groups(groups);
                let written = write(&result)?;
                let QueryResult::Groups(groups) = &result else {
                    return Err(ServiceError::internal("BUG: groups became points"));
                };
                let starts = || groups.rows().take(written).map(|row| row.start_ns);
                let last_start_ns = starts().last();
                Ok(WrittenGroups {
                    groups: written,
                    last_start_ns,
                    at_last_start: starts()
                        .filter(|start_ns| Some(*start_ns) == last_start_ns)
                        .count(),
                    is_at_end: written == groups.len() && !groups.page.has_more,
                })
            })
    }
}
