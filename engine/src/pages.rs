//! The series of a store by source ordinal, in copy-on-write pages that readers share with the store: a clone is a
//! snapshot. While somebody holds one, a change copies what it touches: a group's list of pages, and the page.
//!
//! Pages and groups store the totals and bounds of their series, so that a query skips those without points in its
//! range. Pages are small, because one page is copied per row while a snapshot is held.

use std::sync::Arc;

use crate::EngineError;
use crate::series::{Series, SeriesStats};

/// Number of ordinals per page. A page shared with a snapshot is copied for the first row of its sources.
const PAGE_ORDINALS: u32 = 32;
/// Number of pages per group.
const GROUP_PAGES: u32 = 32;

/// All series of a store. A clone is a snapshot, and costs one reference count.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    /// Sorted by number; groups without series are omitted.
    groups: Arc<Vec<Arc<Group>>>,
}

/// The pages of neighbouring ordinals.
#[derive(Clone)]
struct Group {
    number: u32,
    pages: Members<Arc<Page>>,
}

/// The series of neighbouring ordinals.
type Page = Members<Series>;

/// Members at up to 32 neighbouring positions, with their totals.
#[derive(Clone, Default)]
struct Members<T> {
    /// A bit for each position that has a member.
    there: u32,
    /// Sorted by position.
    members: Vec<T>,
    totals: SeriesStats,
}

/// What was dropped because it has expired.
#[derive(Default)]
pub(crate) struct Expired {
    /// The segments that contain it, with numbers of rows.
    pub(crate) rows: Vec<(u64, u32)>,
    /// The series that have nothing left.
    pub(crate) emptied: Vec<u32>,
}

/// Something that has points and bounds.
trait Counted {
    fn totals(&self) -> SeriesStats;
}

impl Counted for Series {
    fn totals(&self) -> SeriesStats {
        self.stats()
    }
}

impl Counted for Arc<Page> {
    fn totals(&self) -> SeriesStats {
        self.totals
    }
}

impl<T: Counted + Default> Members<T> {
    /// Index of the member at a position, or where it would be inserted.
    fn rank(&self, place: u32) -> Result<usize, usize> {
        let before = self.there & ((1 << place) - 1);
        let rank = before.count_ones() as usize;
        match self.there & (1 << place) {
            0 => Err(rank),
            _ => Ok(rank),
        }
    }

    fn get(&self, place: u32) -> Option<&T> {
        Some(&self.members[self.rank(place).ok()?])
    }

    /// Changes a member, which is created if it does not exist.
    fn change<R>(&mut self, place: u32, change: impl FnOnce(&mut T) -> R) -> R {
        let rank = self.rank(place).unwrap_or_else(|rank| {
            self.there |= 1 << place;
            self.members.insert(rank, T::default());
            rank
        });
        let member = &mut self.members[rank];
        let old = member.totals();
        let answer = change(member);
        let new = member.totals();
        if old == new {
            return answer;
        }
        if holds(new.bounds_ns, old.bounds_ns) {
            self.totals.points -= old.points;
            self.totals.join(new);
        } else {
            self.recount();
        }
        answer
    }

    fn remove(&mut self, place: u32) -> Option<T> {
        let rank = self.rank(place).ok()?;
        self.there &= !(1 << place);
        let removed = self.members.remove(rank);
        self.recount();
        Some(removed)
    }

    /// Positions and members, ascending.
    fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut there = self.there;
        self.members.iter().map(move |member| {
            let place = there.trailing_zeros();
            there &= there.wrapping_sub(1);
            (place, member)
        })
    }

    fn recount(&mut self) {
        self.totals = SeriesStats::default();
        for member in &self.members {
            self.totals.join(member.totals());
        }
    }
}

/// Whether bounds include others.
fn holds(bounds: Option<(i64, i64)>, others: Option<(i64, i64)>) -> bool {
    match (bounds, others) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some((first, last)), Some((other_first, other_last))) => first <= other_first && other_last <= last,
    }
}

/// Group, page and position of a source.
fn address(source: u32) -> (u32, u32, u32) {
    let page = source / PAGE_ORDINALS;
    (page / GROUP_PAGES, page % GROUP_PAGES, source % PAGE_ORDINALS)
}

fn source_of(group: u32, page: u32, place: u32) -> u32 {
    (group * GROUP_PAGES + page) * PAGE_ORDINALS + place
}

impl Pages {
    pub(crate) fn get(&self, source: u32) -> Option<&Series> {
        let (group, page, place) = address(source);
        let group = &self.groups[self.find(group).ok()?];
        group.pages.get(page)?.get(place)
    }

    fn find(&self, group: u32) -> Result<usize, usize> {
        // If no group before it is missing, its index is its number.
        match self.groups.get(group as usize) {
            Some(held) if held.number == group => Ok(group as usize),
            _ => self.groups.binary_search_by_key(&group, |held| held.number),
        }
    }

    /// Changes an existing series.
    pub(crate) fn change<R>(&mut self, source: u32, change: impl FnOnce(&mut Series) -> R) -> Option<R> {
        // Checked first, so that nothing is copied for a missing series.
        self.get(source)?;
        Some(self.change_or_insert(source, change))
    }

    /// Changes a series, which is created if it does not exist.
    pub(crate) fn change_or_insert<R>(&mut self, source: u32, change: impl FnOnce(&mut Series) -> R) -> R {
        let (_, page, place) = address(source);
        let pages = self.group_of(source);
        pages.change(page, |page| Arc::make_mut(page).change(place, change))
    }

    /// Changes series one after the other, which are created if they do not exist. Those that follow each other on a page
    /// share the search for it. Stops at the first error, be it in `changes` or returned by `change`.
    pub(crate) fn change_each<T, E>(
        &mut self,
        changes: impl IntoIterator<Item = Result<(u32, T), E>>,
        mut change: impl FnMut(&mut Series, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut changes = changes.into_iter().peekable();
        while let Some(first) = changes.next() {
            let mut next = first?;
            let page_of = |source: u32| source / PAGE_ORDINALS;
            let (_, number, _) = address(next.0);
            self.group_of(next.0).change(number, |page| {
                let page = Arc::make_mut(page);
                loop {
                    let (source, with) = next;
                    page.change(address(source).2, |series| change(series, with))?;
                    let is_near =
                        |it: &Result<(u32, T), E>| matches!(it, Ok((near, _)) if page_of(*near) == page_of(source));
                    next = match changes.next_if(is_near) {
                        Some(Ok(near)) => near,
                        _ => return Ok(()),
                    };
                }
            })?;
        }
        Ok(())
    }

    /// The pages of a source's group, which is created if it does not exist.
    fn group_of(&mut self, source: u32) -> &mut Members<Arc<Page>> {
        let (number, ..) = address(source);
        let index = self.find(number);
        let groups = Arc::make_mut(&mut self.groups);
        let index = index.unwrap_or_else(|index| {
            let pages = Members::default();
            groups.insert(index, Arc::new(Group { number, pages }));
            index
        });
        &mut Arc::make_mut(&mut groups[index]).pages
    }

    pub(crate) fn remove(&mut self, source: u32) -> Option<Series> {
        self.get(source)?;
        let (number, page, place) = address(source);
        let index = self.find(number).ok()?;
        let groups = Arc::make_mut(&mut self.groups);
        let pages = &mut Arc::make_mut(&mut groups[index]).pages;
        let removed = pages.change(page, |page| Arc::make_mut(page).remove(place));
        if pages.get(page).is_some_and(|page| page.members.is_empty()) {
            pages.remove(page);
        }
        if pages.members.is_empty() {
            groups.remove(index);
        }
        removed
    }

    /// The greatest ordinal.
    pub(crate) fn greatest(&self) -> Option<u32> {
        let group = self.groups.last()?;
        let (page, members) = group.pages.iter().last()?;
        let (place, _) = members.iter().last()?;
        Some(source_of(group.number, page, place))
    }

    /// All series, ascending by source.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Series)> {
        self.within((i64::MIN, i64::MAX), false)
    }

    /// The series of pages whose bounds overlap the range, both ends inclusive, ascending by source. With
    /// `with_points`, series without points are skipped.
    fn within(&self, range_ns: (i64, i64), with_points: bool) -> impl Iterator<Item = (u32, &Series)> {
        let reaches = move |totals: SeriesStats| !with_points || totals.reaches(range_ns);
        let groups = self
            .groups
            .iter()
            .filter(move |group| reaches(group.pages.totals));
        groups.flat_map(move |group| {
            let pages = group.pages.iter().filter(move |(_, page)| reaches(page.totals));
            pages.flat_map(move |(number, page)| {
                let series = page.iter().filter(move |(_, series)| reaches(series.stats()));
                series.map(move |(place, series)| (source_of(group.number, number, place), series))
            })
        })
    }

    /// The series whose bounds overlap the range, both ends inclusive, ascending by source. Pages without such series
    /// are skipped.
    pub(crate) fn reaching(&self, range_ns: (i64, i64)) -> impl Iterator<Item = (u32, &Series)> {
        self.within(range_ns, true)
    }

    /// Points and bounds of all series, where `series` counts those that may have rows before `from_ns`. The others are
    /// counted by the totals of whole pages and groups, without visiting their members.
    pub(crate) fn count(
        &self,
        from_ns: i64,
        mut series: impl FnMut(&Series) -> Result<SeriesStats, EngineError>,
    ) -> Result<SeriesStats, EngineError> {
        let is_whole = |totals: SeriesStats| totals.bounds_ns.is_none_or(|(first, _)| first >= from_ns);
        let mut counted = SeriesStats::default();
        for group in self.groups.iter() {
            if is_whole(group.pages.totals) {
                counted.join(group.pages.totals);
                continue;
            }
            for page in &group.pages.members {
                if is_whole(page.totals) {
                    counted.join(page.totals);
                    continue;
                }
                for member in &page.members {
                    counted.join(series(member)?);
                }
            }
        }
        Ok(counted)
    }

    /// Points and bounds of all series.
    pub(crate) fn totals(&self) -> SeriesStats {
        let mut totals = SeriesStats::default();
        for group in self.groups.iter() {
            totals.join(group.pages.totals);
        }
        totals
    }

    /// Drops all blocks that end before the cutoff. Pages without such blocks are neither copied nor visited.
    pub(crate) fn expire(&mut self, cutoff_ns: i64) -> Expired {
        let mut expired = Expired::default();
        let is_old = |totals: SeriesStats| totals.bounds_ns.is_some_and(|(first, _)| first < cutoff_ns);
        let page_has =
            |page: &Page| is_old(page.totals) && page.members.iter().any(|it| it.has_expired(cutoff_ns));
        let group_has =
            |group: &Group| is_old(group.pages.totals) && group.pages.members.iter().any(|it| page_has(it));
        for index in 0..self.groups.len() {
            if !group_has(&self.groups[index]) {
                continue;
            }
            let groups = Arc::make_mut(&mut self.groups);
            let group = Arc::make_mut(&mut groups[index]);
            let numbers: Vec<u32> = group.pages.iter().map(|(number, _)| number).collect();
            let pages = numbers.into_iter().zip(&mut group.pages.members);
            for (number, page) in pages.filter(|(_, page)| page_has(page)) {
                let page = Arc::make_mut(page);
                for series in &mut page.members {
                    expired.rows.extend(series.expire(cutoff_ns));
                }
                page.recount();
                let empty = page.iter().filter(|(_, series)| series.is_empty());
                let empty = empty.map(|(place, _)| source_of(group.number, number, place));
                expired.emptied.extend(empty);
            }
            group.pages.recount();
        }
        expired
    }

    /// Memory of pages and groups in bytes, including their reference counts.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        const COUNTERS: usize = 2 * size_of::<usize>();
        let of_page =
            |page: &Arc<Page>| COUNTERS + size_of::<Page>() + page.members.capacity() * size_of::<Series>();
        let of_group = |group: &Arc<Group>| {
            let pages = &group.pages.members;
            let list = pages.capacity() * size_of::<Arc<Page>>();
            COUNTERS + size_of::<Group>() + list + pages.iter().map(of_page).sum::<usize>()
        };
        let list = self.groups.capacity() * size_of::<Arc<Group>>();
        list + self.groups.iter().map(of_group).sum::<usize>()
    }
}
