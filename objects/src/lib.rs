//! A port to an object store: S3 and what speaks its protocol, or a local directory, by the crate `object_store`.
//!
//! Objects are immutable: [`ObjectStore::put`] never replaces one. Every call is bounded in time and in memory, retries
//! transient faults a few times, and blocks its thread; so callers are ordinary threads, never those of an async
//! runtime. The crate handles names and bytes and does not know what they mean.
//!
//! Reading order: [`ObjectStore`] (what a store does), [`Location`] (what a URL may say), [`open`], and `sim`, a store
//! in memory that fails as a test tells it to. `README.md` lists what a store must guarantee.

#![warn(missing_docs)]

mod error;
mod library;
mod location;
mod retry;
#[cfg(feature = "sim")]
pub mod sim;
mod transfer;

use std::ops::Range;

pub use bytes::Bytes;
pub use error::{ObjectError, UrlError};
pub use library::{open, open_within};
pub use location::Location;

/// Longest name of an object in bytes, without the prefix of the store.
pub const NAME_BYTES_MAX: usize = 256;
/// Most objects that [`ObjectStore::list`] returns.
pub const LIST_MAX: usize = 200_000;

/// What [`ObjectStore::put`] does if the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It fails with [`ObjectError::Exists`].
    Refuse,
    /// It succeeds if the object has the same bytes, which are read and compared.
    SameBytes,
}

/// An object, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, without the prefix of the store.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was stored, by the clock of the store, in UTC nanoseconds. Only differences between objects of one store
    /// mean anything.
    pub stored_at_ns: i64,
}

/// An object store. Shared between threads; every call blocks.
///
/// Names are relative, of letters, digits, `.`, `-`, `_` and `/`, at most [`NAME_BYTES_MAX`] bytes. After a call that
/// failed with [`ObjectError::Unavailable`] it is not known whether it took effect.
pub trait ObjectStore: Send + Sync {
    /// Stores an object under a name that is not taken. It is durable, listed and readable when this returns.
    ///
    /// An object of more than 64 MiB is sent in parts to a store that takes parts. Two writers of such an object under
    /// one name are not told apart there, because the name is checked before the last part is sent, not with it.
    ///
    /// # Errors
    /// See [`ObjectError`]; [`ObjectError::Exists`] if the name is taken.
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError>;

    /// Reads a whole object of at most this many bytes.
    ///
    /// # Errors
    /// See [`ObjectError`]; [`ObjectError::TooLarge`] before anything is read.
    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError>;

    /// Reads a range of an object. The range lies within the object, and the caller bounds its length.
    ///
    /// # Errors
    /// See [`ObjectError`]; [`ObjectError::Short`] if the object ends before the range does.
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, ObjectError>;

    /// Lists the objects whose names begin with this prefix and a `/`, sorted by name. Everything that was put before
    /// is listed.
    ///
    /// # Errors
    /// See [`ObjectError`]; [`ObjectError::TooMany`] if there are more than [`LIST_MAX`].
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError>;

    /// Deletes these objects. Those that do not exist count as deleted.
    ///
    /// # Errors
    /// See [`ObjectError`]. Then any of them may have been deleted.
    fn delete(&self, names: &[String]) -> Result<(), ObjectError>;
}

/// Refuses a name that would not mean the same in every store.
fn check_name(name: &str) -> Result<(), ObjectError> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_name_byte);
    match name.len() <= NAME_BYTES_MAX && name.split('/').all(is_part) {
        true => Ok(()),
        false => Err(ObjectError::Name(name.to_owned())),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
