//! Members by ordinal, in copy-on-write pages that checkpoints share with the catalog. A page that is held elsewhere
//! does not change, and two versions of a page have different pointers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::source::Common;

/// Number of ordinals per page.
const PAGE_ORDINALS: u32 = 1_024;

/// A member and its ordinal.
type Member<T> = (u32, Arc<T>);

/// A page and its members.
pub(super) struct Page<T> {
    number: u32,
    /// By ordinal. Never empty.
    members: Vec<Member<T>>,
    /// Cached summary of a page of sources; reset when a member changes.
    pub(super) common: OnceLock<Common>,
}

impl<T> Clone for Page<T> {
    fn clone(&self) -> Self {
        Self::new(self.number, self.members.clone())
    }
}

impl<T> Page<T> {
    /// Creates a page of these members, which are in order of their ordinals.
    pub fn new(number: u32, members: impl IntoIterator<Item = Member<T>>) -> Self {
        Self {
            number,
            members: members.into_iter().collect(),
            common: OnceLock::new(),
        }
    }

    /// The number of the page that an ordinal belongs to.
    pub const fn number_of(ordinal: u32) -> u32 {
        ordinal / PAGE_ORDINALS
    }

    /// The page number: 0 for ordinals from 0 on, 1 for those from 1,024 on.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The member with this ordinal.
    pub fn get(&self, ordinal: u32) -> Option<&Arc<T>> {
        let place = self.find(ordinal).ok()?;
        self.members.get(place).map(|(_, member)| member)
    }

    /// The members, for a change.
    fn change(&mut self) -> &mut Vec<Member<T>> {
        self.common.take();
        &mut self.members
    }

    /// In order of the ordinals.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<T>> {
        self.members.iter().map(|(_, member)| member)
    }

    /// The index of an ordinal, or where it would be inserted.
    fn find(&self, ordinal: u32) -> Result<usize, usize> {
        // If no member before it was removed, its index is its offset in the page.
        let expected = (ordinal % PAGE_ORDINALS) as usize;
        match self.members.get(expected) {
            Some((held, _)) if *held == ordinal => Ok(expected),
            _ => self.members.binary_search_by_key(&ordinal, |(held, _)| *held),
        }
    }
}

/// Whether both pages hold equal members. Shared members are not compared.
impl<T: PartialEq> PartialEq for Page<T> {
    fn eq(&self, other: &Self) -> bool {
        let equal = |(one, other): (&Member<T>, &Member<T>)| {
            one.0 == other.0 && (Arc::ptr_eq(&one.1, &other.1) || one.1 == other.1)
        };
        self.members.len() == other.members.len() && self.members.iter().zip(&other.members).all(equal)
    }
}

/// Members by ordinal.
pub(super) struct Pages<T> {
    /// By number.
    pages: BTreeMap<u32, Arc<Page<T>>>,
    len: usize,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self {
            pages: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<T> Pages<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// The pages that have members, in order of their numbers.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &Arc<Page<T>>> {
        self.pages.values()
    }

    /// In order of the ordinals.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.pages.values().flat_map(|page| page.iter())
    }

    pub fn get(&self, ordinal: u32) -> Option<&Arc<T>> {
        self.pages.get(&Page::<T>::number_of(ordinal))?.get(ordinal)
    }

    /// Inserts a member or replaces it by a new version. Copies the page's pointers if the page is shared.
    pub fn insert(&mut self, ordinal: u32, member: Arc<T>) {
        let number = Page::<T>::number_of(ordinal);
        let page = self.pages.entry(number);
        let page = Arc::make_mut(page.or_insert_with(|| Arc::new(Page::new(number, Vec::new()))));
        match page.find(ordinal) {
            Ok(place) => page.change()[place].1 = member,
            Err(place) => {
                page.change().insert(place, (ordinal, member));
                self.len += 1;
            }
        }
    }

    pub fn remove(&mut self, ordinal: u32) -> Option<Arc<T>> {
        let number = Page::<T>::number_of(ordinal);
        let page = self.pages.get_mut(&number)?;
        let place = page.find(ordinal).ok()?;
        self.len -= 1;
        if page.members.len() > 1 {
            return Some(Arc::make_mut(page).change().remove(place).1);
        }
        let page = self.pages.remove(&number)?;
        page.members.first().map(|(_, member)| Arc::clone(member))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn pages_agree_with_a_map() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut pages, mut model) = (Pages::default(), BTreeMap::new());
            let mut held = Vec::new();
            for step in 0..2_000_u32 {
                let ordinal = random.u32(0..5) * 1_000 + random.u32(0..60);
                if random.bool() {
                    pages.insert(ordinal, Arc::new(step));
                    model.insert(ordinal, step);
                } else {
                    let removed = pages.remove(ordinal);
                    assert_eq!(removed.map(|it| *it), model.remove(&ordinal));
                }
                if step % 100 == 0 {
                    let values: Vec<u32> = model.values().copied().collect();
                    held.push((pages.pages().cloned().collect::<Vec<_>>(), values));
                }
                assert_eq!(pages.get(ordinal).map(|it| **it), model.get(&ordinal).copied());
                assert_eq!(pages.len(), model.len());
                assert!(pages.iter().map(|it| **it).eq(model.values().copied()));
            }
            for (pages, values) in held {
                let members = pages.iter().flat_map(|page| page.iter());
                assert!(
                    members.map(|it| **it).eq(values),
                    "a page that is held stays as it was"
                );
                assert!(pages.iter().all(|page| page.iter().len() > 0));
            }
        }
    }

    #[test]
    fn a_change_replaces_one_page_only() {
        let mut pages = Pages::default();
        (0..3_000).for_each(|ordinal| pages.insert(ordinal, Arc::new(ordinal)));
        let held: Vec<_> = pages.pages().cloned().collect();
        assert_eq!(
            held.iter().map(|page| page.number()).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        pages.insert(1_024, Arc::new(7));
        let same: Vec<_> = pages.pages().zip(&held).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(same, [true, false, true]);
        assert!(*pages.pages().nth(1).unwrap() != held[1]);
        pages.insert(1_024, Arc::new(1_024));
        assert!(*pages.pages().nth(1).unwrap() == held[1]);
    }
}
