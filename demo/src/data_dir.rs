//! The data directory of the demo: a temporary one that is removed at the end, or a given one that is kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[derive(Debug)]
pub struct DataDir {
    pub path: PathBuf,
    /// A temporary directory is removed at the end or on drop.
    pub temporary: Option<TempDir>,
}

impl DataDir {
    /// Uses a given directory, which must be empty or absent, or creates a temporary one that only this user can read.
    ///
    /// # Errors
    /// The directory is not empty, or cannot be read or created.
    pub fn choose(given: Option<&Path>) -> Result<Self, String> {
        let Some(path) = given else {
            let created = TempDir::with_prefix("tidewatch-demo-")
                .map_err(|error| format!("cannot make a temporary directory: {error}"))?;
            return Ok(Self {
                path: created.path().to_owned(),
                temporary: Some(created),
            });
        };
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                return Err(format!("cannot read the directory {}: {error}", path.display()));
            }
        };
        if !is_empty {
            return Err(format!(
                "the demo needs a directory of its own, and {} is not empty; name another, or look at what is in \
                 there with `tidewatch serve --data-dir {}`",
                path.display(),
                path.display()
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            temporary: None,
        })
    }

    /// Removes a temporary directory.
    pub fn end(self) {
        if let Some(Err(error)) = self.temporary.map(TempDir::close) {
            tracing::warn!(path = %self.path.display(), %error, "the demo's data could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_removed_with_its_contents() {
        let directory = DataDir::choose(None).unwrap();
        let path = directory.path.clone();
        fs::create_dir(path.join("below")).unwrap();
        fs::write(path.join("below/file"), "x").unwrap();
        directory.end();
        assert!(!path.exists());
    }

    #[test]
    fn a_given_directory_must_be_absent_or_empty_and_is_kept() {
        let parent = TempDir::new().unwrap();
        let (absent, empty, full) = (
            parent.path().join("absent"),
            parent.path().join("empty"),
            parent.path().join("full"),
        );
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("file"), "x").unwrap();
        for path in [&absent, &empty] {
            DataDir::choose(Some(path)).unwrap().end();
        }
        assert!(empty.exists());
        let refusal = DataDir::choose(Some(&full)).unwrap_err();
        assert!(refusal.contains("is not empty"), "{refusal}");
        let file = full.join("file");
        assert!(DataDir::choose(Some(&file)).is_err(), "a file is no directory");
    }
}
