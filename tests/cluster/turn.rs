//! Tests take turns, because two clusters at a time would be too much for a small machine. Those that leave their world in
//! order share one, which ends with the last test that waits for it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::world::{Plan, World};

static TURN: Mutex<()> = Mutex::new(());
/// A world that tests share.
pub struct Shared {
    world: Mutex<Weak<Mutex<World>>>,
    is_direct: bool,
}

/// The world of most tests.
pub static SHARED: Shared = Shared::new(false);
/// One whose nodes reach each other without proxies.
pub static DIRECT: Shared = Shared::new(true);

impl Shared {
    const fn new(is_direct: bool) -> Self {
        Shared {
            world: Mutex::new(Weak::new()),
            is_direct,
        }
    }

    fn present(&self) -> Option<Arc<Mutex<World>>> {
        let world = self
            .world
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        // A test that fails leaves its world in any state.
        world.filter(|world| !world.is_poisoned())
    }

    /// Runs a test in this world.
    pub fn run(&self, test: impl FnOnce(&mut World)) {
        // Kept while this test waits for its turn.
        let waiting = self.present();
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let world = waiting
            .filter(|world| !world.is_poisoned())
            .or_else(|| self.present());
        let world = world.unwrap_or_else(|| {
            let plan = Plan {
                is_direct: self.is_direct,
                ..Plan::default()
            };
            let world = Arc::new(Mutex::new(World::start(&plan)));
            *self.world.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&world);
            world
        });
        test(&mut world.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Runs a test in a world of its own.
pub fn in_own_world(plan: &Plan, test: impl FnOnce(&mut World)) {
    alone(|| test(&mut World::start(plan)));
}

/// Runs a test while no other has a cluster.
pub fn alone(test: impl FnOnce()) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test();
}
