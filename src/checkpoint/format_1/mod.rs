//! Data directories of format 1, written by older programs: a directory per bucket, the catalog as one file, and a
//! mark. A start converts them. No old file is removed before the manifest names all files that replace it, so that an
//! interrupted conversion starts over. Documented in src/journal/FORMAT.md, "Format 1".

mod answers;
mod convert;
mod directory;
mod evidence;
mod files;

pub use convert::{Damage, convert};
pub use directory::{BucketDir, BucketManifest};
pub use files::{bucket_dir, deleted_in_log, exists, ordinals, read_catalog, read_mark};
