//! An object store whose reads wait until the test lets them go on.

use std::ops::Range;

use objects::sim::SimObjects;
use objects::{Bytes, Existing, Listed, ObjectError, ObjectStore};
use parking_lot::{Condvar, Mutex};

pub struct Gate {
    objects: SimObjects,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn over(objects: SimObjects) -> Self {
        Gate {
            objects,
            is_open: Mutex::new(false),
            opened: Condvar::new(),
        }
    }

    pub fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }
}

impl ObjectStore for Gate {
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError> {
        self.objects.put(name, bytes, existing)
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError> {
        self.objects.get(name, bytes_max)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
        drop(is_open);
        self.objects.get_range(name, range)
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError> {
        self.objects.list(prefix)
    }

    fn delete(&self, names: &[String]) -> Result<(), ObjectError> {
        self.objects.delete(names)
    }
}
