//! An object store in memory that fails as a test tells it to. Time is virtual: it passes with each call and as the test
//! says. Lists and reads never lag behind a put, as the contract requires.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;

use crate::{Bytes, Existing, LIST_MAX, Listed, ObjectError, ObjectStore, check_name};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing unusual.
    None,
    /// The store refuses it; nothing changes.
    Refused,
    /// The store cannot be reached; nothing changes.
    Unavailable,
    /// The store has no space: a put changes nothing. Other calls succeed.
    Full,
    /// The call takes this many seconds of virtual time, and succeeds.
    Slow(u32),
    /// The call takes effect, and its answer is lost.
    Lost,
}

/// Decides what happens to a call.
type Faults = Box<dyn FnMut() -> Fault + Send>;

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects stored.
    pub puts: u64,
    /// Bytes of these.
    pub put_bytes: u64,
    /// Reads of objects and of parts of them.
    pub gets: u64,
    /// Lists.
    pub lists: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Calls that a fault met.
    pub faults: u64,
}

/// A way to the store. Clones reach the same store.
#[derive(Clone)]
pub struct SimObjects {
    state: Arc<Mutex<State>>,
}

struct State {
    objects: BTreeMap<String, (Bytes, i64)>,
    now_ns: i64,
    faults: Faults,
    counts: Counts,
    /// Every name that was ever stored.
    names: BTreeMap<String, u32>,
}

impl Default for SimObjects {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            now_ns: 0,
            faults: Box::new(|| Fault::None),
            counts: Counts::default(),
            names: BTreeMap::new(),
        };
        SimObjects {
            state: Arc::new(Mutex::new(state)),
        }
    }
}

impl SimObjects {
    /// From now on, `faults` says what happens to each call.
    pub fn set_faults(&self, faults: impl FnMut() -> Fault + Send + 'static) {
        self.state.lock().faults = Box::new(faults);
    }

    /// From now on, one call of `one_in` fails, in a way that the seed decides.
    pub fn fail_at_random(&self, seed: u64, one_in: u32) {
        let mut rng = Rng::with_seed(seed);
        self.set_faults(move || match rng.u32(..one_in) {
            0 => {
                let slow = Fault::Slow(rng.u32(1..100));
                rng.choice([Fault::Refused, Fault::Unavailable, Fault::Full, slow, Fault::Lost])
                    .unwrap_or(Fault::None)
            }
            _ => Fault::None,
        });
    }

    /// Lets virtual time pass.
    pub fn advance(&self, nanoseconds: i64) {
        self.state.lock().now_ns += nanoseconds;
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    /// The objects, by name.
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        let state = self.state.lock();
        let objects = state.objects.iter();
        objects
            .map(|(name, (bytes, _))| (name.clone(), bytes.clone()))
            .collect()
    }

    /// The names that were stored more than once, after a deletion.
    pub fn reused_names(&self) -> Vec<String> {
        let state = self.state.lock();
        let names = state.names.iter().filter(|(_, count)| **count > 1);
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Replaces an object behind the contract's back, or removes it: damage.
    pub fn damage(&self, name: &str, bytes: Option<Bytes>) {
        let mut state = self.state.lock();
        let at_ns = state.now_ns;
        match bytes {
            Some(bytes) => drop(state.objects.insert(name.to_owned(), (bytes, at_ns))),
            None => drop(state.objects.remove(name)),
        }
    }

    /// Runs a call that meets what the faults say.
    fn call<T>(
        &self,
        name: &str,
        is_put: bool,
        work: impl FnOnce(&mut State) -> Result<T, ObjectError>,
    ) -> Result<T, ObjectError> {
        check_name(name)?;
        let mut state = self.state.lock();
        state.now_ns += 1_000_000;
        let fault = (state.faults)();
        state.counts.faults += u64::from(fault != Fault::None);
        let failed =
            |what: &str| -> Box<dyn std::error::Error + Send + Sync> { io::Error::other(what).into() };
        match fault {
            Fault::Refused => Err(ObjectError::Refused(name.to_owned(), failed("simulated"))),
            Fault::Unavailable => Err(ObjectError::Unavailable(name.to_owned(), failed("simulated"))),
            Fault::Full if is_put => Err(ObjectError::Unavailable(name.to_owned(), failed("no space"))),
            Fault::Lost => {
                // Also a call that failed has no answer.
                let _ = work(&mut state);
                Err(ObjectError::Unavailable(name.to_owned(), failed("no answer")))
            }
            Fault::Slow(seconds) => {
                state.now_ns += i64::from(seconds) * 1_000_000_000;
                work(&mut state)
            }
            Fault::None | Fault::Full => work(&mut state),
        }
    }
}

impl State {
    fn object(&self, name: &str) -> Result<Bytes, ObjectError> {
        let found = self.objects.get(name).map(|(bytes, _)| bytes.clone());
        found.ok_or_else(|| ObjectError::NotFound(name.to_owned()))
    }
}

impl ObjectStore for SimObjects {
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError> {
        self.call(name, true, |state| match state.objects.get(name) {
            Some((stored, _)) if existing == Existing::SameBytes && *stored == bytes => Ok(()),
            Some(_) => Err(ObjectError::Exists(name.to_owned())),
            None => {
                state.counts.puts += 1;
                state.counts.put_bytes += bytes.len() as u64;
                *state.names.entry(name.to_owned()).or_default() += 1;
                let at_ns = state.now_ns;
                // A copy, because the caller's bytes may be those of a file that is removed later.
                let bytes = Bytes::copy_from_slice(&bytes);
                state.objects.insert(name.to_owned(), (bytes, at_ns));
                Ok(())
            }
        })
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError> {
        self.call(name, false, |state| {
            let bytes = state.object(name)?;
            state.counts.gets += 1;
            match bytes.len() as u64 > bytes_max {
                true => Err(ObjectError::TooLarge(
                    name.to_owned(),
                    bytes.len() as u64,
                    bytes_max,
                )),
                false => Ok(bytes),
            }
        })
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ObjectError> {
        self.call(name, false, |state| {
            let bytes = state.object(name)?;
            state.counts.gets += 1;
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            match range.end > bytes.len() as u64 {
                true => Err(ObjectError::Short(name.to_owned(), range.end)),
                false => Ok(bytes.slice(range.start as usize..range.end as usize)),
            }
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError> {
        self.call(prefix, false, |state| {
            state.counts.lists += 1;
            let start = format!("{prefix}/");
            let objects = state.objects.range(start.clone()..);
            let listed = objects.take_while(|(name, _)| name.starts_with(&start));
            let listed: Vec<Listed> = listed
                .map(|(name, (bytes, stored_at_ns))| Listed {
                    name: name.clone(),
                    bytes: bytes.len() as u64,
                    stored_at_ns: *stored_at_ns,
                })
                .collect();
            match listed.len() > LIST_MAX {
                true => Err(ObjectError::TooMany(prefix.to_owned())),
                false => Ok(listed),
            }
        })
    }

    fn delete(&self, names: &[String]) -> Result<(), ObjectError> {
        let Some(first) = names.first() else { return Ok(()) };
        names.iter().try_for_each(|name| check_name(name))?;
        self.call(first, false, |state| {
            for name in names {
                state.counts.deletes += u64::from(state.objects.remove(name).is_some());
            }
            Ok(())
        })
    }
}
