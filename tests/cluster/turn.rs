//! Tests take turns, because two clusters at a time would be too much for a small machine. Those that leave their world in
//! order share one, which ends with the last test that waits for it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::world::{Plan, World};

static TURN: Mutex<()> = Mutex::new(());
static SHARED: Mutex<Weak<Mutex<World>>> = Mutex::new(Weak::new());

fn shared() -> Option<Arc<Mutex<World>>> {
    let world = SHARED.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
    // A test that fails leaves its world in any state.
    world.filter(|world| !world.is_poisoned())
}

/// Runs a test in the world that tests share.
pub fn in_shared_world(test: impl FnOnce(&mut World)) {
    // Kept while this test waits for its turn.
    let waiting = shared();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let world = waiting.filter(|world| !world.is_poisoned()).or_else(shared);
    let world = world.unwrap_or_else(|| {
        let world = Arc::new(Mutex::new(World::start(&Plan::default())));
        *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&world);
        world
    });
    test(&mut world.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Runs a test in a world of its own.
pub fn in_own_world(plan: &Plan, test: impl FnOnce(&mut World)) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test(&mut World::start(plan));
}
