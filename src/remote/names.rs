//! Names of objects, as FORMAT.md draws them. Numbers have as many digits as the largest one, so that lists sort by age.

use std::fmt;
use std::str::FromStr;

/// Number of a shard's owner: no two writers have the same one.
pub type Epoch = u64;

const DIGITS: usize = 20;
const ROOT_SUFFIX: &str = ".root";

/// The names of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShardNames(pub(super) u16);

/// Name of a root: its epoch, and its number within that. They sort by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootName {
    pub epoch: Epoch,
    pub number: u64,
}

/// The kind of a file, which is its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Segment,
    Run,
    Carried,
}

/// Name of an object with the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileName {
    pub(super) epoch: Epoch,
    pub(super) number: u64,
    pub(super) kind: Kind,
}

/// What an object is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Epoch(Epoch),
    File(FileName),
    Root(RootName),
}

impl fmt::Display for RootName {
    /// The short form, which the command line prints and takes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

impl FromStr for RootName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, number) = text.split_once('-').ok_or(())?;
        Ok(RootName {
            epoch: epoch.parse().map_err(|_| ())?,
            number: number.parse().map_err(|_| ())?,
        })
    }
}

impl Kind {
    const ALL: [(Kind, &str); 3] = [
        (Kind::Segment, ".segment"),
        (Kind::Run, ".run"),
        (Kind::Carried, ".carried"),
    ];

    fn suffix(self) -> &'static str {
        let of_kind = Self::ALL.iter().find(|(kind, _)| *kind == self);
        of_kind.map_or("", |(_, suffix)| suffix)
    }
}

impl ShardNames {
    /// What the names of all objects of the shard begin with.
    pub(super) fn all(self) -> String {
        format!("shards/{:05}", self.0)
    }

    pub(super) fn epochs(self) -> String {
        format!("{}/epochs", self.all())
    }

    pub(super) fn roots(self) -> String {
        format!("{}/roots", self.all())
    }

    pub(super) fn name(self, object: Object) -> String {
        match object {
            Object::Epoch(epoch) => format!("{}/{epoch:0DIGITS$}", self.epochs()),
            Object::Root(RootName { epoch, number }) => {
                format!("{}/{epoch:0DIGITS$}-{number:0DIGITS$}{ROOT_SUFFIX}", self.roots())
            }
            Object::File(FileName { epoch, number, kind }) => {
                let (all, suffix) = (self.all(), kind.suffix());
                format!("{all}/files/{epoch:0DIGITS$}/{number:0DIGITS$}{suffix}")
            }
        }
    }

    /// What an object is; `None` if the name is not one that this room gives.
    pub(super) fn parse(self, name: &str) -> Option<Object> {
        let own = name.strip_prefix(&self.all())?.strip_prefix('/')?;
        let object = match own.split_once('/')? {
            ("epochs", epoch) => Object::Epoch(epoch.parse().ok()?),
            ("roots", root) => Object::Root(root.strip_suffix(ROOT_SUFFIX)?.parse().ok()?),
            ("files", file) => {
                let (epoch, file) = file.split_once('/')?;
                let of_kind = |(kind, suffix): &(Kind, &str)| Some((*kind, file.strip_suffix(suffix)?));
                let (kind, number) = Kind::ALL.iter().find_map(of_kind)?;
                Object::File(FileName {
                    epoch: epoch.parse().ok()?,
                    number: number.parse().ok()?,
                    kind,
                })
            }
            _ => return None,
        };
        // Signs and other numbers of digits parse, too, and are not ours.
        (self.name(object) == name).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(epoch: Epoch, number: u64) -> RootName {
        RootName { epoch, number }
    }

    #[test]
    fn names_round_trip_and_sort_by_age() {
        let names = ShardNames(7);
        let file = |epoch, kind| FileName {
            epoch,
            number: 12,
            kind,
        };
        let objects = [
            Object::Epoch(3),
            Object::File(file(3, Kind::Segment)),
            Object::File(file(u64::MAX, Kind::Run)),
            Object::File(file(3, Kind::Carried)),
            Object::Root(root(3, 4)),
        ];
        for object in objects {
            assert_eq!(names.parse(&names.name(object)), Some(object));
            assert_eq!(ShardNames(8).parse(&names.name(object)), None);
        }
        assert_eq!(
            names.name(objects[1]),
            "shards/00007/files/00000000000000000003/00000000000000000012.segment"
        );
        let mut sorted = [root(2, 10), root(10, 1), root(2, 9), root(1, 100)];
        sorted.sort_by_key(|root| names.name(Object::Root(*root)));
        assert_eq!(sorted, [root(1, 100), root(2, 9), root(2, 10), root(10, 1)]);
        assert!(sorted.is_sorted());
        assert_eq!("10-1".parse(), Ok(root(10, 1)));
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in [
            "",
            "shards/00007",
            "shards/00007/epochs/3",
            "shards/00007/epochs/+0000000000000000003",
            "shards/00007/epochs/00000000000000000003.root",
            "shards/00007/roots/00000000000000000003.root",
            "shards/00007/files/00000000000000000003/00000000000000000012.txt",
            "shards/00007/files/00000000000000000003/x/00000000000000000012.run",
            "shards/7/epochs/00000000000000000003",
            "backups/epochs/00000000000000000003",
        ] {
            assert_eq!(ShardNames(7).parse(name), None, "{name}");
        }
        for name in ["", "1", "1-", "-1", "1-2-3", "a-b"] {
            assert_eq!(name.parse::<RootName>(), Err(()), "{name}");
        }
    }
}
