//! Boards: panels on a grid, each with a query, and the links that show a board to readers without a log-in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::registry::Owned;
use super::text_bytes::of_board;
use super::{Catalog, KeyHash, names};
use crate::ids::ObjectId;

/// A board of an organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Board {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    pub settings: BoardSettings,
    /// 1 at first, and one more with each change of the settings.
    pub version: u64,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
    /// Links that show the board, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
}

/// What a change of a board replaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardSettings {
    pub name: Box<str>,
    pub range: BoardRange,
    /// Name in the IANA database; `None` for that of the reader.
    pub timezone: Option<Box<str>>,
    /// Seconds after which an open board reads its panels again; `None` for never.
    pub refresh_seconds: Option<u32>,
    pub variables: Vec<Variable>,
    pub panels: Vec<Panel>,
}

/// The range of time that a board shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardRange {
    /// The time before now: a length as in `groupBy`, such as `24h`.
    Last(Box<str>),
    /// Both ends inclusive, in UTC nanoseconds.
    Between { start_ns: i64, end_ns: i64 },
}

/// A text that the reader of a board chooses, and that stands in the panels' queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Unique within the board.
    pub name: Box<str>,
    pub default: Option<Box<str>>,
    /// The choices; `None` for any text.
    pub values: Option<Vec<Box<str>>>,
}

/// A part of a board, with the place that it takes in the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    pub title: Box<str>,
    pub kind: PanelKind,
    /// JSON: a body of a query, in which variables stand; of rules, an object with the bucket.
    pub query: Box<str>,
    pub unit: Option<Box<str>>,
    /// Digits behind the point.
    pub decimals: Option<u8>,
    pub thresholds: Option<Vec<Threshold>>,
    /// First column, from 0.
    pub x: u8,
    /// First row, from 0.
    pub y: u16,
    /// Columns.
    pub w: u8,
    /// Rows.
    pub h: u8,
}

/// How a panel shows its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelKind {
    Lines,
    Bars,
    /// One value.
    Stat,
    Table,
    /// States over time.
    States,
    /// The rules of a bucket.
    Rules,
}

names!(PanelKind: Lines => "lines", Bars => "bars", Stat => "stat", Table => "table", States => "states", Rules => "rules");

/// From this value on, up to the next threshold, values have this level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    pub value: f64,
    pub level: Level,
}

/// What a value means to those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Good,
    Warning,
    Critical,
}

names!(Level: Good => "good", Warning => "warning", Critical => "critical");

/// A link that shows a board until its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub id: ObjectId,
    /// SHA-256 of the token, which is not stored.
    pub hash: KeyHash,
    /// UTC nanoseconds.
    pub expires_at_ns: i64,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

impl Share {
    /// Whether it no longer shows its board.
    pub const fn has_expired(&self, now_ns: i64) -> bool {
        self.expires_at_ns <= now_ns
    }
}

impl Board {
    /// The links that still show the board, oldest first.
    pub fn shares_in_force(&self, now_ns: i64) -> impl Iterator<Item = &Share> {
        self.shares.iter().filter(move |share| !share.has_expired(now_ns))
    }
}

impl Owned for Board {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn owner(&self) -> ObjectId {
        self.organization_id
    }
}

impl Catalog {
    pub fn board(&self, id: ObjectId) -> Option<&Arc<Board>> {
        self.boards.get(id)
    }

    /// The boards of an organization, oldest first.
    pub fn boards_of(&self, organization_id: ObjectId) -> impl Iterator<Item = &Arc<Board>> {
        self.boards.of(organization_id)
    }

    pub fn board_count(&self, organization_id: ObjectId) -> usize {
        self.boards.count_of(organization_id)
    }

    /// The board that the token with this SHA-256 shows, and its link, also one that has expired.
    pub fn board_by_share(&self, hash: &KeyHash) -> Option<(&Arc<Board>, &Share)> {
        let board = self.board(*self.board_by_share.get(hash)?)?;
        let share = board.shares.iter().find(|share| share.hash == *hash)?;
        Some((board, share))
    }

    /// Adds a board as the newest one. Has no effect if it exists.
    pub(super) fn create_board(&mut self, board: &Board) {
        if !self.boards.contains(board.id) {
            let ordinal = self.boards.next_ordinal();
            self.insert_board(ordinal, Arc::new(board.clone()));
        }
    }

    /// Adds a board that has an ordinal already. Has no effect if its organization does not exist.
    pub(super) fn insert_board(&mut self, ordinal: u64, board: Arc<Board>) {
        if self.organization(board.organization_id).is_none() {
            return;
        }
        self.update_holdings(board.organization_id, |it| {
            it.replace_text(0, of_board(&board.settings));
        });
        for share in &board.shares {
            self.board_by_share.insert(share.hash, board.id);
        }
        self.boards.insert(ordinal, board);
    }

    pub(super) fn update_board(&mut self, id: ObjectId, settings: &BoardSettings, at_ns: i64) {
        let Some(known) = self.board(id).cloned() else {
            return;
        };
        let (before, after) = (of_board(&known.settings), of_board(settings));
        self.update_holdings(known.organization_id, |it| it.replace_text(before, after));
        self.boards.change(id, |board| {
            board.settings.clone_from(settings);
            board.version += 1;
            board.updated_at_ns = at_ns;
        });
    }

    pub(super) fn delete_board(&mut self, id: ObjectId) {
        let Some(board) = self.boards.remove(id) else {
            return;
        };
        for share in &board.shares {
            self.board_by_share.remove(&share.hash);
        }
        self.update_holdings(board.organization_id, |it| {
            it.replace_text(of_board(&board.settings), 0);
        });
    }

    /// Adds a link to a board, and removes those that have expired when it was made.
    pub(super) fn share_board(&mut self, id: ObjectId, share: &Share) {
        let Some(known) = self.board(id).cloned() else {
            return;
        };
        let expired = known.shares.iter();
        for old in expired.filter(|it| it.has_expired(share.created_at_ns)) {
            self.board_by_share.remove(&old.hash);
        }
        self.boards.change(id, |board| {
            board.shares.retain(|it| !it.has_expired(share.created_at_ns));
            board.shares.push(share.clone());
        });
        self.board_by_share.insert(share.hash, id);
    }

    pub(super) fn unshare_board(&mut self, id: ObjectId, share_id: ObjectId) {
        let known = self.board(id);
        let share = known.and_then(|board| board.shares.iter().find(|share| share.id == share_id));
        if let Some(hash) = share.map(|share| share.hash) {
            self.board_by_share.remove(&hash);
            self.boards
                .change(id, |board| board.shares.retain(|it| it.id != share_id));
        }
    }
}
