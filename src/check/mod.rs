//! `tidewatch check`: reads a data directory completely, reports what it finds, and changes nothing. With `--repair` it
//! removes damaged parts so that a server starts on the rest, keeps copies of what it removes, and reports what is
//! lost. With `--adopt` it creates a catalog for points whose catalog is lost. It locks the directory like a server.

mod adopt;
mod aside;
mod carried;
mod copied;
mod evidence;
mod flips;
mod ledger;
mod leftovers;
mod log;
mod mend;
mod old;
mod overlay;
mod rebuild;
mod repair;
mod segments;
mod survey;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use disk::{Disk, StdDisk};

use crate::checkpoint::Layout;
use crate::clock::Clock;
use crate::config::Config;
use crate::http;
use crate::random;
use crate::service::passwords::Hasher;
use crate::startup::DirectoryLock;

pub(crate) use copied::NamedFiles;

/// Length of a generated password, in bytes.
const PASSWORD_BYTES: usize = 12;

/// Writes messages for the operator and counts damage. Write errors are ignored, so that a repair does not stop halfway
/// because nobody reads its output.
struct Report<'a> {
    out: &'a mut dyn Write,
    damages: u64,
}

impl Report<'_> {
    fn say(&mut self, what: impl Display) {
        let _ = writeln!(self.out, "{what}");
    }

    fn damage(&mut self, what: impl Display) {
        self.damages += 1;
        self.say(format_args!("DAMAGED  {what}"));
    }
}

/// The mode of a check.
pub enum Wish {
    /// Report what is found.
    Report,
    /// Remove damaged parts.
    Repair,
    /// Create a catalog if there is none, for the user with this email address.
    Adopt(String),
}

/// Reports what a data directory holds. Succeeds if a server would start on it and every block reads.
///
/// # Errors
/// The directory cannot be read: it does not exist, a server holds its lock, or the disk fails; or the email address is
/// invalid.
pub fn run(config: &Config, wish: Wish, clock: &dyn Clock) -> Result<ExitCode, String> {
    let data_dir = &config.storage.data_dir;
    if !data_dir.is_dir() {
        return Err(format!(
            "{} is not a directory; name one with --data-dir",
            data_dir.display()
        ));
    }
    let lock = match wish {
        Wish::Report => DirectoryLock::take_to_read(data_dir),
        Wish::Repair | Wish::Adopt(_) => DirectoryLock::take(data_dir).map(Some),
    };
    let _lock = lock.map_err(|error| error.to_string())?;
    let layout = Layout {
        data_dir: data_dir.clone(),
    };
    let (disk, out): (Arc<dyn Disk>, _) = (Arc::new(StdDisk), &mut std::io::stdout().lock());
    let whole = match wish {
        Wish::Report => check(&disk, &layout, false, out)?,
        Wish::Repair => check(&disk, &layout, true, out)?,
        Wish::Adopt(email) => adopt_for(&disk, &layout, &email, clock.now_ns(), out)?,
    };
    Ok(if whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Creates a catalog for points whose catalog is lost, with a user whose password is printed. Returns whether the
/// directory is undamaged afterwards.
fn adopt_for(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    email: &str,
    now_ns: i64,
    out: &mut dyn Write,
) -> Result<bool, String> {
    let email = http::email(email).map_err(|fault| format!("the e-mail address {fault}"))?;
    let password = random::bytes::<PASSWORD_BYTES>().map_err(|error| error.to_string())?;
    let password: String = password.iter().map(|byte| format!("{byte:02x}")).collect();
    let salt = random::bytes().map_err(|error| error.to_string())?;
    let owner = adopt::Owner {
        password: Hasher::default()
            .hash(&password, salt)
            .map_err(|error| error.to_string())?,
        email,
    };
    let mut say = |what: String| {
        let _ = writeln!(out, "adopted {what}");
    };
    let adopted = adopt::adopt(disk, layout, &owner, now_ns, &mut say)?;
    if adopted {
        let _ = writeln!(
            out,
            "sign in as {} with the password {password}, and change it",
            owner.email
        );
    }
    check(disk, layout, false, out)
}

/// Returns whether the directory is undamaged, after the repair if there is one.
fn check(disk: &Arc<dyn Disk>, layout: &Layout, repair: bool, out: &mut dyn Write) -> Result<bool, String> {
    if survey::is_empty(&**disk, layout)? {
        let _ = writeln!(
            out,
            "empty: {} has no data of a server; is the volume mounted?",
            layout.data_dir.display()
        );
        return Ok(true);
    }
    let found = survey::survey(disk, layout, &mut Report { out, damages: 0 })?;
    if found == 0 {
        let _ = writeln!(out, "sound: nothing is damaged");
        return Ok(true);
    }
    if !repair {
        let _ = writeln!(
            out,
            "damaged: {found} damages; --repair removes what is damaged and reports what is lost; make a copy first"
        );
        return Ok(false);
    }
    repair::repair(disk, layout, out)?;
    let left = survey::survey(
        disk,
        layout,
        &mut Report {
            out: &mut std::io::sink(),
            damages: 0,
        },
    )?;
    let _ = match left {
        0 => writeln!(out, "repaired: a server starts on what is left"),
        left => writeln!(
            out,
            "damaged: {left} damages cannot be repaired; restore a backup"
        ),
    };
    Ok(left == 0)
}

#[cfg(test)]
mod tests;
