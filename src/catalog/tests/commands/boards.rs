//! Random commands about boards.

use super::super::super::Command;
use super::super::boards::{board, board_settings, share};
use super::super::id;
use super::CommandGenerator;
use crate::clock::DAY_NS;

impl CommandGenerator {
    pub(super) fn attempt_at_boards(&mut self) -> Option<Command> {
        self.made += 1;
        let (new, at_ns) = (id(self.made), self.made as i64 * DAY_NS);
        let known = self.random.pick(&self.boards);
        Some(match self.random.below(6) {
            0 => Command::BoardUpdated {
                board_id: known?,
                settings: board_settings(&"n".repeat(1 + self.random.below(9))),
                at_ns,
            },
            1 => Command::BoardDeleted { board_id: known? },
            2 => {
                // Most end soon, so that later ones remove them.
                let expires_at_ns = at_ns + self.random.below(20) as i64 * DAY_NS;
                let share = share(self.made, at_ns, expires_at_ns);
                self.shares.push((known?, share.id));
                Command::BoardShared {
                    board_id: known?,
                    share,
                }
            }
            3 => {
                let (board_id, share_id) = self.random.pick(&self.shares)?;
                Command::BoardUnshared { board_id, share_id }
            }
            _ => {
                let organization_id = self.random.pick(&self.organizations)?;
                self.boards.push(new);
                Command::BoardCreated {
                    board: board(self.made, organization_id, at_ns),
                }
            }
        })
    }
}
