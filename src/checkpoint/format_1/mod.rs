//! Data directories of format 1, which older programs wrote: a directory for each bucket, the catalog as one file, and
//! a mark. A start converts them; nothing of the old files is removed before the manifest names all that took their
//! place, so that a conversion that is cut short begins anew. Drawn in src/journal/FORMAT.md, "Format 1".

mod answers;
mod convert;
mod directory;
mod evidence;
mod files;
mod survey;

pub use convert::{Damage, convert};
pub use directory::BucketDir;
pub use files::exists;
pub use survey::{Survey, survey};
