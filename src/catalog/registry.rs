//! Objects by id, and by owner in order of creation: keys, rules, webhooks, silences, annotations, boards.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Key, Rule, Webhook};
use crate::ids::ObjectId;

/// An object that belongs to another one.
pub(super) trait Owned {
    fn id(&self) -> ObjectId;
    fn owner(&self) -> ObjectId;
}

impl Owned for Key {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.bucket_id.unwrap_or(self.organization_id)
    }
}

impl Owned for Rule {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.bucket_id
    }
}

impl Owned for Webhook {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.organization_id
    }
}

/// All objects of one type. An object's ordinal is its position in the order of creation, among all of them.
pub(super) struct Registry<T> {
    /// By owner, then by ordinal.
    by_owner: HashMap<ObjectId, BTreeMap<u64, Arc<T>>>,
    /// Owner and ordinal of each object, by id.
    places: HashMap<ObjectId, (ObjectId, u64)>,
    /// The greatest ordinal assigned. Ordinals are never reused.
    pub last_ordinal: u64,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            by_owner: HashMap::new(),
            places: HashMap::new(),
            last_ordinal: 0,
        }
    }
}

impl<T: Owned + Clone> Registry<T> {
    pub fn get(&self, id: ObjectId) -> Option<&Arc<T>> {
        let (owner, ordinal) = self.places.get(&id)?;
        self.by_owner.get(owner)?.get(ordinal)
    }

    /// Whether an object of this owner has this ordinal.
    pub fn is_taken(&self, owner: ObjectId, ordinal: u64) -> bool {
        self.by_owner
            .get(&owner)
            .is_some_and(|objects| objects.contains_key(&ordinal))
    }

    pub fn contains(&self, id: ObjectId) -> bool {
        self.places.contains_key(&id)
    }

    /// All objects with their ordinals, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Arc<T>)> {
        let objects = self.by_owner.values().flatten();
        objects.map(|(ordinal, object)| (*ordinal, object))
    }

    /// The objects of an owner with their ordinals, oldest first.
    pub fn numbered_of(&self, owner: ObjectId) -> impl Iterator<Item = (u64, &Arc<T>)> {
        let objects = self.by_owner.get(&owner).into_iter().flatten();
        objects.map(|(ordinal, object)| (*ordinal, object))
    }

    /// The objects of an owner, oldest first.
    pub fn of(&self, owner: ObjectId) -> impl Iterator<Item = &Arc<T>> {
        self.by_owner.get(&owner).into_iter().flat_map(BTreeMap::values)
    }

    pub fn count_of(&self, owner: ObjectId) -> usize {
        self.by_owner.get(&owner).map_or(0, BTreeMap::len)
    }

    /// Assigns the ordinal of a new object.
    pub fn next_ordinal(&mut self) -> u64 {
        self.last_ordinal += 1;
        self.last_ordinal
    }

    /// The ordinal of an object; a new one if it does not exist.
    pub fn ordinal_of(&mut self, id: ObjectId) -> u64 {
        let known = self.places.get(&id).map(|(_, ordinal)| *ordinal);
        known.unwrap_or_else(|| self.next_ordinal())
    }

    /// Adds an object that has an ordinal already, or replaces it by a new version.
    pub fn insert(&mut self, ordinal: u64, object: Arc<T>) {
        let (id, owner) = (object.id(), object.owner());
        self.remove(id);
        self.places.insert(id, (owner, ordinal));
        self.by_owner.entry(owner).or_default().insert(ordinal, object);
    }

    pub fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut T)) {
        if let Some((owner, ordinal)) = self.places.get(&id)
            && let Some(objects) = self.by_owner.get_mut(owner)
            && let Some(object) = objects.get_mut(ordinal)
        {
            change(Arc::make_mut(object));
        }
    }

    pub fn remove(&mut self, id: ObjectId) -> Option<Arc<T>> {
        let (owner, ordinal) = self.places.remove(&id)?;
        self.by_owner.get_mut(&owner)?.remove(&ordinal)
    }

    /// Removes all objects of an owner, and returns them.
    pub fn remove_all_of(&mut self, owner: ObjectId) -> Vec<Arc<T>> {
        let objects = self.by_owner.remove(&owner).unwrap_or_default();
        let removed: Vec<_> = objects.into_values().collect();
        for object in &removed {
            self.places.remove(&object.id());
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Member {
        id: ObjectId,
        owner: ObjectId,
        version: u32,
    }

    impl Owned for Member {
        fn id(&self) -> ObjectId {
            self.id
        }

        fn owner(&self) -> ObjectId {
            self.owner
        }
    }

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    fn member(number: u8, owner: u8) -> Member {
        Member {
            id: id(number),
            owner: id(owner),
            version: 0,
        }
    }

    fn add(registry: &mut Registry<Member>, member: Member) {
        let ordinal = registry.ordinal_of(member.id);
        registry.insert(ordinal, Arc::new(member));
    }

    fn ids_of(registry: &Registry<Member>, owner: u8) -> Vec<ObjectId> {
        registry.of(id(owner)).map(|it| it.id).collect()
    }

    #[test]
    fn objects_are_listed_by_creation_and_updates_keep_their_place() {
        let mut registry = Registry::default();
        for number in [9, 3, 5] {
            add(&mut registry, member(number, 1));
        }
        add(&mut registry, member(4, 2));
        let changed = Member {
            version: 7,
            ..member(3, 1)
        };
        add(&mut registry, changed);
        assert_eq!(ids_of(&registry, 1), [id(9), id(3), id(5)]);
        assert_eq!(registry.get(id(3)).unwrap().version, 7);
        assert_eq!((registry.count_of(id(1)), registry.last_ordinal), (3, 4));
    }

    #[test]
    fn objects_with_an_ordinal_are_inserted_in_any_order() {
        let mut registry = Registry::default();
        for (ordinal, number) in [(7, 3), (2, 9), (5, 4)] {
            registry.insert(ordinal, Arc::new(member(number, 1)));
        }
        assert_eq!(ids_of(&registry, 1), [id(9), id(4), id(3)]);
    }

    #[test]
    fn ordinals_of_removed_objects_are_not_reused() {
        let mut registry = Registry::default();
        (1..=4).for_each(|number| add(&mut registry, member(number, number % 2)));
        assert_eq!(registry.remove(id(4)).unwrap().id, id(4));
        assert_eq!(registry.remove(id(4)), None);
        let removed = registry.remove_all_of(id(1));
        assert_eq!(removed.iter().map(|it| it.id).collect::<Vec<_>>(), [id(1), id(3)]);
        assert!(!registry.contains(id(1)) && registry.get(id(3)).is_none());
        assert_eq!(ids_of(&registry, 0), [id(2)]);
        assert_eq!(registry.iter().count(), 1);
        assert_eq!(registry.next_ordinal(), 5);
    }

    #[test]
    fn a_change_does_not_alter_a_version_held_elsewhere() {
        let mut registry = Registry::default();
        add(&mut registry, member(1, 2));
        let held = Arc::clone(registry.get(id(1)).unwrap());
        registry.change(id(1), |it| it.version = 1);
        registry.change(id(9), |it| it.version = 1);
        assert_eq!((held.version, registry.get(id(1)).unwrap().version), (0, 1));
    }
}
