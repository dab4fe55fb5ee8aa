//! `tidewatch check`: reads a data directory completely, reports what it finds, and changes nothing. With `--repair` it
//! removes damaged parts so that a server starts on the rest, keeps copies of what it removes, and reports what is
//! lost. With `--adopt` it creates a catalog for points whose catalog is lost. It locks the directory like a server.

mod adopt;
mod carried;
mod copied;
mod evidence;
mod flips;
mod format_1;
mod ledger;
mod leftovers;
mod log;
mod overlay;
mod rebuild;
mod repair;
mod segments;
mod survey;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use disk::StdDisk;

use crate::checkpoint::{DataDir, Layout, message};
use crate::clock::Clock;
use crate::config::Config;
use crate::hex;
use crate::http;
use crate::progress::Progress;
use crate::random;
use crate::service::passwords::Hasher;
use crate::startup::DirectoryLock;

pub(crate) use copied::damages;

/// Length of a generated password, in bytes.
const PASSWORD_BYTES: usize = 12;

/// Writes messages for the operator and counts damage. Write errors are ignored, so that a repair does not stop halfway
/// because nobody reads its output.
struct Report<'a> {
    out: &'a mut dyn Write,
    progress: &'a dyn Progress,
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

    /// Reports an error as damage.
    fn sound<T>(&mut self, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|error| self.damage(error)).ok()
    }
}

/// Receives a message about each repair.
type Say<'a> = dyn FnMut(String) + 'a;

/// What a check does with what it finds.
pub enum Mode {
    /// Report it.
    Report,
    /// Remove damaged parts.
    Repair,
    /// Create a catalog if there is none, for the user with this email address.
    Adopt(String),
}

/// Reports what a data directory holds to `out`. Succeeds if a server would start on it and every block reads.
///
/// # Errors
/// The directory cannot be read: it does not exist, a server holds its lock, or the disk fails; or the email address is
/// invalid.
pub fn run(
    config: &Config,
    mode: Mode,
    clock: &dyn Clock,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<ExitCode, String> {
    let data_dir = &config.storage.data_dir;
    if !data_dir.is_dir() {
        return Err(format!(
            "{} is not a directory; name one with --data-dir",
            data_dir.display()
        ));
    }
    let lock = match mode {
        Mode::Report => DirectoryLock::take_to_read(data_dir),
        Mode::Repair | Mode::Adopt(_) => DirectoryLock::take(data_dir).map(Some),
    };
    let _lock = lock.map_err(message)?;
    let dir = DataDir {
        disk: Arc::new(StdDisk),
        layout: Layout::of(data_dir),
    };
    if let Mode::Adopt(email) = &mode {
        adopt_for(&dir, email, clock.now_ns(), out)?;
    }
    let whole = check(&dir, matches!(mode, Mode::Repair), progress, out)?;
    Ok(if whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Creates a catalog for points whose catalog is lost, with a user whose password is printed.
fn adopt_for(dir: &DataDir, email: &str, now_ns: i64, out: &mut dyn Write) -> Result<(), String> {
    let email = http::email(email).map_err(|fault| format!("the e-mail address {fault}"))?;
    let password = random::bytes::<PASSWORD_BYTES>().map_err(message)?;
    let password = hex::text(&password);
    let salt = random::bytes().map_err(message)?;
    let owner = adopt::Owner {
        password: Hasher::default().hash(&password, salt).map_err(message)?,
        email,
    };
    let adopted = adopt::adopt(dir, &owner, now_ns, &mut |what| {
        let _ = writeln!(out, "adopted {what}");
    })?;
    if adopted {
        let _ = writeln!(
            out,
            "sign in as {} with the password {password}, and change it",
            owner.email
        );
    }
    Ok(())
}

/// Returns whether the directory is undamaged, after the repair if there is one.
fn check(dir: &DataDir, repair: bool, progress: &dyn Progress, out: &mut dyn Write) -> Result<bool, String> {
    let mut report = Report {
        out,
        progress,
        damages: 0,
    };
    if survey::is_empty(dir)? {
        report.say(format_args!(
            "empty: {} has no data of a server; is the volume mounted?",
            dir.path().display()
        ));
        return Ok(true);
    }
    survey::survey(dir, &mut report)?;
    let found = report.damages;
    if found == 0 {
        report.say("sound: nothing is damaged");
        return Ok(true);
    }
    if !repair {
        report.say(format_args!(
            "damaged: {found} damages; --repair removes what is damaged and reports what is lost; make a copy first"
        ));
        return Ok(false);
    }
    repair::repair(dir, &mut |what| report.say(format_args!("repaired {what}")))?;
    let mut after = Report {
        out: &mut io::sink(),
        progress,
        damages: 0,
    };
    survey::survey(dir, &mut after)?;
    match after.damages {
        0 => report.say("repaired: a server starts on what is left"),
        left => report.say(format_args!(
            "damaged: {left} damages cannot be repaired; restore a backup"
        )),
    }
    Ok(after.damages == 0)
}

#[cfg(test)]
mod tests;
