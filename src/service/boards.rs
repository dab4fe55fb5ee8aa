//! Boards: panels that show what queries answer.

use std::sync::Arc;

use super::page::{Page, PageRequest};
use super::{Caller, Service};
use crate::catalog::{Board, BoardSettings, Catalog, Command, text_bytes};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{BOARDS_MAX, NAME_CHARS_MAX};

/// The versions of a board that a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Versions {
    /// Whatever the board's version is.
    Any,
    /// One of these.
    OneOf(Vec<u64>),
}

impl Versions {
    /// # Errors
    /// 412 if the board has another version.
    fn check(&self, board: &Board) -> Result<(), ServiceError> {
        match self {
            Self::OneOf(versions) if !versions.contains(&board.version) => {
                Err(ServiceError::precondition_failed(format!(
                    "the board has changed: its version is {}, which If-Match does not name; read it again and repeat the \
                     change",
                    board.version
                )))
            }
            Self::Any | Self::OneOf(_) => Ok(()),
        }
    }
}

impl Service {
    /// Lists the boards of the organization, oldest first.
    pub fn list_boards(&self, caller: &Caller, page: PageRequest) -> Page<Arc<Board>> {
        let organization_id = caller.organization_id;
        self.catalog.read(|catalog| {
            let boards = catalog.boards_of(organization_id).cloned();
            page.cut(catalog.board_count(organization_id), boards)
        })
    }

    /// Returns one board.
    ///
    /// # Errors
    /// 404.
    pub fn board(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Board>, ServiceError> {
        self.catalog.read(|catalog| board_for(catalog, caller, id))
    }

    /// Creates a board.
    ///
    /// # Errors
    /// 409 for one board too many; 403 beyond the limit of texts.
    pub async fn create_board(
        &self,
        caller: &Caller,
        settings: BoardSettings,
    ) -> Result<Arc<Board>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let organization_id = caller.organization_id;
        let count = self.catalog.read(|catalog| catalog.board_count(organization_id));
        if count >= BOARDS_MAX {
            return Err(ServiceError::conflict(format!(
                "the organization has {count} boards, and may have {BOARDS_MAX}; delete some it does not need"
            )));
        }
        self.admit_text(organization_id, 0, text_bytes::of_board(&settings))?;
        let (id, now_ns) = (self.next_id(), self.now_ns());
        let board = Board {
            id,
            organization_id,
            settings,
            version: 1,
            created_at_ns: now_ns,
            updated_at_ns: now_ns,
            shares: Vec::new(),
        };
        let _settled = decision
            .commit(self.auditor(caller).audited(Command::BoardCreated { board }))
            .await?;
        self.board(caller, id)
    }

    /// Creates a board like another one, without its links.
    ///
    /// # Errors
    /// 404, and as [`Service::create_board`].
    pub async fn copy_board(
        &self,
        caller: &Caller,
        id: ObjectId,
        name: Option<String>,
    ) -> Result<Arc<Board>, ServiceError> {
        let original = self.board(caller, id)?;
        let name = name.unwrap_or_else(|| name_of_copy(&original.settings.name));
        let settings = BoardSettings {
            name: name.into(),
            ..original.settings.clone()
        };
        self.create_board(caller, settings).await
    }

    /// Changes a board of one of these versions. `change` makes its new settings from the present ones; if they are the
    /// same, nothing changes.
    ///
    /// # Errors
    /// 404; 412 for another version; those of `change`; 403 beyond the limit of texts.
    pub async fn update_board(
        &self,
        caller: &Caller,
        id: ObjectId,
        versions: &Versions,
        change: impl FnOnce(&BoardSettings) -> Result<BoardSettings, ServiceError>,
    ) -> Result<Arc<Board>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let known = self.board(caller, id)?;
        versions.check(&known)?;
        let settings = change(&known.settings)?;
        if settings == known.settings {
            return Ok(known);
        }
        let (before, after) = (
            text_bytes::of_board(&known.settings),
            text_bytes::of_board(&settings),
        );
        self.admit_text(caller.organization_id, before, after)?;
        let command = Command::BoardUpdated {
            board_id: id,
            settings,
            at_ns: self.now_ns(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        self.board(caller, id)
    }

    /// Deletes a board of one of these versions, and its links.
    ///
    /// # Errors
    /// 404; 412 for another version.
    pub async fn delete_board(
        &self,
        caller: &Caller,
        id: ObjectId,
        versions: &Versions,
    ) -> Result<Arc<Board>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let board = self.board(caller, id)?;
        versions.check(&board)?;
        let command = Command::BoardDeleted { board_id: id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(board)
    }
}

/// Finds the board that a request names: 404 when it is unknown or another organization's.
pub(super) fn board_for(
    catalog: &Catalog,
    caller: &Caller,
    id: ObjectId,
) -> Result<Arc<Board>, ServiceError> {
    let board = catalog.board(id);
    let board = board.filter(|board| board.organization_id == caller.organization_id);
    board.cloned().ok_or_else(|| ServiceError::not_found("board"))
}

fn name_of_copy(name: &str) -> String {
    let name: String = format!("{name} (copy)").chars().take(NAME_CHARS_MAX).collect();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_copy_says_so_as_far_as_there_is_room() {
        assert_eq!(name_of_copy("Plant"), "Plant (copy)");
        let long = "ä".repeat(NAME_CHARS_MAX - 3);
        assert_eq!(name_of_copy(&long), format!("{long} (c"));
        let longer = "ä".repeat(NAME_CHARS_MAX - 1);
        assert_eq!(name_of_copy(&longer), longer, "names are trimmed");
    }
}
