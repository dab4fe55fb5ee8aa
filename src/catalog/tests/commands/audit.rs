//! Random entries of the audit.

use super::super::super::Command;
use super::super::audit::audit;
use super::super::id;
use super::CommandGenerator;

impl CommandGenerator {
    /// An entry alone, now and then.
    pub(super) fn entry_alone(&mut self) -> Option<Command> {
        if !self.is_recent || self.random.below(100) > 0 {
            return None;
        }
        self.made += 1;
        let audit = audit(self.made, id(1));
        Some(Command::PointsDeleted { audit })
    }

    /// The command, at times with an entry.
    pub(super) fn perhaps_audited(&mut self, command: Command) -> Command {
        if !self.is_recent || self.random.below(4) > 0 {
            return command;
        }
        self.made += 1;
        Command::Audited {
            command: Box::new(command),
            audit: audit(self.made, id(1)),
        }
    }
}
