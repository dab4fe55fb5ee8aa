//! Which extent is in which slot, which of them readers hold, and which one gives way.

use std::collections::BTreeMap;

/// An extent of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    /// Number that the cache gave the file.
    pub(super) file: u64,
    /// Its place in the file, counted in extents.
    pub(super) index: u64,
}

struct Held {
    slot: u64,
    /// Readers that hold it.
    readers: u32,
    /// When it was last used, if nobody holds it.
    turn: u64,
}

/// The slots of a cache.
pub(super) struct Slots {
    slots_max: u64,
    /// Slots that were ever used: no slot from here on has been.
    used: u64,
    free: Vec<u64>,
    held: BTreeMap<Extent, Held>,
    /// The extents that nobody holds, the least recently used first.
    idle: BTreeMap<u64, Extent>,
    turn: u64,
}

impl Slots {
    pub(super) fn new(slots_max: u64) -> Self {
        Slots {
            slots_max,
            used: 0,
            free: Vec::new(),
            held: BTreeMap::new(),
            idle: BTreeMap::new(),
            turn: 0,
        }
    }

    /// Number of extents.
    pub(super) fn len(&self) -> u64 {
        self.held.len() as u64
    }

    pub(super) fn contains(&self, extent: Extent) -> bool {
        self.held.contains_key(&extent)
    }

    /// The slot of an extent, which stays there until [`Slots::put_down`].
    pub(super) fn hold(&mut self, extent: Extent) -> Option<u64> {
        let held = self.held.get_mut(&extent)?;
        if held.readers == 0 {
            self.idle.remove(&held.turn);
        }
        held.readers += 1;
        Some(held.slot)
    }

    /// Ends a [`Slots::hold`].
    pub(super) fn put_down(&mut self, extent: Extent) {
        let turn = self.next_turn();
        if let Some(held) = self.held.get_mut(&extent) {
            held.readers = held.readers.saturating_sub(1);
            if held.readers == 0 {
                held.turn = turn;
                self.idle.insert(turn, extent);
            }
        }
    }

    /// A slot to be written: an empty one, or that of the least recently used extent, which is gone then. `None` if
    /// readers hold all of them. The caller gives it back with [`Slots::fill`] or [`Slots::give_back`].
    pub(super) fn take(&mut self) -> Option<u64> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.used < self.slots_max {
            self.used += 1;
            return Some(self.used - 1);
        }
        let (_, oldest) = self.idle.pop_first()?;
        self.held.remove(&oldest).map(|held| held.slot)
    }

    /// The slot holds this extent from now on, unless another one does.
    pub(super) fn fill(&mut self, slot: u64, extent: Extent) {
        if self.contains(extent) {
            return self.give_back(slot);
        }
        let turn = self.next_turn();
        let held = Held {
            slot,
            readers: 0,
            turn,
        };
        self.held.insert(extent, held);
        self.idle.insert(turn, extent);
    }

    /// The slot holds nothing.
    pub(super) fn give_back(&mut self, slot: u64) {
        self.free.push(slot);
    }

    /// Forgets an extent, unless a reader holds it.
    pub(super) fn forget(&mut self, extent: Extent) {
        if let Some(held) = self.held.get(&extent)
            && held.readers == 0
        {
            let (slot, turn) = (held.slot, held.turn);
            self.held.remove(&extent);
            self.idle.remove(&turn);
            self.free.push(slot);
        }
    }

    /// Forgets the extents of a file that nobody reads any more.
    pub(super) fn forget_file(&mut self, file: u64) {
        let all = Extent { file, index: 0 }..=Extent {
            file,
            index: u64::MAX,
        };
        let extents: Vec<Extent> = self.held.range(all).map(|(extent, _)| *extent).collect();
        extents.into_iter().for_each(|extent| self.forget(extent));
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}
