//! The data directory of the demo: a temporary one that is removed at the end, or a given one that is kept.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    temporary: bool,
}

impl Home {
    /// Creates a temporary directory in `parent`; `number` makes its name unique. It is removed on drop.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn temporary(parent: &Path, number: u64) -> Result<Self, String> {
        let path = parent.join(format!("tidewatch-demo-{number:016x}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("cannot make the directory {}: {error}", path.display()))?;
        Ok(Self {
            path,
            temporary: true,
        })
    }

    /// Uses a given directory, which must be empty or absent. It is kept.
    ///
    /// # Errors
    /// The directory is not empty or cannot be read.
    pub fn given(path: &Path) -> Result<Self, String> {
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
            temporary: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is removed at the end of the demo.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the demo's data could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_one_goes_with_all_that_is_in_it() {
        let parent = tempfile::TempDir::new().unwrap();
        let home = Home::temporary(parent.path(), 7).unwrap();
        fs::create_dir(home.path().join("below")).unwrap();
        fs::write(home.path().join("below/file"), "x").unwrap();
        assert!(home.is_temporary());
        assert!(
            Home::temporary(parent.path(), 7).is_err(),
            "never somebody else's"
        );
        drop(home);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_given_one_is_absent_or_empty_and_stays() {
        let parent = tempfile::TempDir::new().unwrap();
        let (absent, empty, full) = (
            parent.path().join("absent"),
            parent.path().join("empty"),
            parent.path().join("full"),
        );
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("file"), "x").unwrap();
        for path in [&absent, &empty] {
            drop(Home::given(path).unwrap());
        }
        assert!(empty.exists());
        let refusal = Home::given(&full).unwrap_err();
        assert!(refusal.contains("is not empty"), "{refusal}");
        assert!(Home::given(&full.join("file")).is_err(), "a file is no directory");
    }
}
