//! Boards as they are shown.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::panel_query::PanelQuery;
use super::views::{Resource, view};
use crate::catalog::{
    Board, BoardRange, BoardSettings, Level, Panel, PanelKind, Share, Threshold, Variable, json_number,
};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

view! {
    /// A board.
    pub struct BoardView<'a> of(board: &'a Board; settings = &board.settings) {
        /// ID of the board.
        #[serde(rename = "_id")]
        id: ObjectId = board.id,
        /// Name of the board.
        name: &'a str = &settings.name,
        /// The range of time that the board shows.
        range: RangeView<'a> = RangeView::of(&settings.range),
        /// Time zone; null for that of the reader.
        timezone: Option<&'a str> = settings.timezone.as_deref(),
        /// Seconds after which an open board reads its panels again; null for never.
        refresh_seconds: Option<u32> = settings.refresh_seconds,
        /// Texts that the reader chooses.
        variables: Vec<VariableView<'a>> = settings.variables.iter().map(VariableView::of).collect(),
        /// The panels, as they were sent.
        panels: Vec<PanelView<'a>> = settings.panels.iter().map(PanelView::of).collect(),
        /// 1 at first, and one more with each change; the `ETag` of the board, without the quotes.
        version: u64 = board.version,
        /// When the board was created.
        created_at: Timestamp = Timestamp(board.created_at_ns),
        /// When the board last changed.
        updated_at: Timestamp = Timestamp(board.updated_at_ns),
    }
}

view! {
    /// What a board is made of: the body that creates it again.
    #[schema(as = BoardContent)]
    pub struct BoardContentView<'a> of(settings: &'a BoardSettings) {
        /// Name of the board.
        name: &'a str = &settings.name,
        /// The range of time that the board shows.
        range: RangeView<'a> = RangeView::of(&settings.range),
        /// Time zone; null for that of the reader.
        timezone: Option<&'a str> = settings.timezone.as_deref(),
        /// Seconds after which an open board reads its panels again; null for never.
        refresh_seconds: Option<u32> = settings.refresh_seconds,
        /// Texts that the reader chooses.
        variables: Vec<VariableView<'a>> = settings.variables.iter().map(VariableView::of).collect(),
        /// The panels.
        panels: Vec<PanelView<'a>> = settings.panels.iter().map(PanelView::of).collect(),
    }
}

/// The time before now as a length, or both ends.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = BoardRange)]
pub enum RangeView<'a> {
    /// A length such as `24h`.
    Last(&'a str),
    /// Both ends, inclusive.
    #[serde(rename_all = "camelCase")]
    Between {
        start_time: Timestamp,
        end_time: Timestamp,
    },
}

impl<'a> RangeView<'a> {
    fn of(range: &'a BoardRange) -> Self {
        match *range {
            BoardRange::Last(ref length) => Self::Last(length),
            BoardRange::Between { start_ns, end_ns } => Self::Between {
                start_time: Timestamp(start_ns),
                end_time: Timestamp(end_ns),
            },
        }
    }
}

view! {
    /// A text that the reader of a board chooses.
    #[schema(as = Variable)]
    pub struct VariableView<'a> of(variable: &'a Variable) {
        /// Name, unique within the board.
        name: &'a str = &variable.name,
        /// Its value until the reader chooses another one.
        default: Option<&'a str> = variable.default.as_deref(),
        /// The choices; null for any text.
        values: Option<&'a [Box<str>]> = variable.values.as_deref(),
    }
}

view! {
    /// A part of a board.
    #[schema(as = Panel)]
    pub struct PanelView<'a> of(panel: &'a Panel) {
        /// Title; may be empty.
        title: &'a str = &panel.title,
        /// How it shows its values.
        kind: PanelKind = panel.kind,
        /// What it shows, as it was sent.
        #[schema(value_type = PanelQuery)]
        query: Option<Box<RawValue>> = RawValue::from_string(panel.query.to_string()).ok(),
        /// Unit of the values.
        unit: Option<&'a str> = panel.unit.as_deref(),
        /// Digits behind the point.
        decimals: Option<u8> = panel.decimals,
        /// From which value on values have a level.
        thresholds: Option<Vec<ThresholdView>> =
            panel.thresholds.as_ref().map(|all| all.iter().map(ThresholdView::of).collect()),
        /// First column of 12, from 0.
        x: u8 = panel.x,
        /// First row, from 0.
        y: u16 = panel.y,
        /// Columns.
        w: u8 = panel.w,
        /// Rows.
        h: u8 = panel.h,
    }
}

view! {
    /// From this value on, up to the next threshold, values have this level.
    #[schema(as = Threshold)]
    pub struct ThresholdView of(threshold: &Threshold) {
        /// The least value of the level.
        #[schema(value_type = f64)]
        value: Value = json_number(threshold.value),
        /// The level.
        level: Level = threshold.level,
    }
}

view! {
    /// A link that shows a board until its end.
    pub struct ShareView of(share: &Share) {
        /// ID of the link.
        #[serde(rename = "_id")]
        id: ObjectId = share.id,
        /// From this time on the link shows nothing.
        expires_at: Timestamp = Timestamp(share.expires_at_ns),
        /// When the link was made.
        created_at: Timestamp = Timestamp(share.created_at_ns),
    }
}

view! {
    /// A new link. Its token is shown this once.
    pub struct NewShareView<'a> of(share: &Share, token: &'a str, origin: &str) {
        /// ID of the link.
        #[serde(rename = "_id")]
        id: ObjectId = share.id,
        /// What opens the board; only a hash of it is stored.
        token: &'a str = token,
        /// Address of the page that shows the board.
        url: String = format!("{origin}/#/shared/{token}"),
        /// From this time on the link shows nothing.
        expires_at: Timestamp = Timestamp(share.expires_at_ns),
        /// When the link was made.
        created_at: Timestamp = Timestamp(share.created_at_ns),
    }
}

view! {
    /// A removed link.
    pub struct DeletedShareView of(share: &Share) {
        /// ID of the link.
        #[serde(rename = "_id")]
        id: ObjectId = share.id,
    }
}

view! {
    /// The response to the removal of a link.
    pub struct DeletedShareAnswer of(share: &Share) {
        /// Result in words.
        message: &'static str = "link removed",
        /// The removed link.
        deleted_share: DeletedShareView = DeletedShareView::of(share),
    }
}

impl Resource for BoardView<'_> {
    const ONE: &'static str = "board";
    const MANY: &'static str = "boards";
}

impl Resource for ShareView {
    const ONE: &'static str = "share";
    const MANY: &'static str = "shares";
}

impl Resource for NewShareView<'_> {
    const ONE: &'static str = "share";
    const MANY: &'static str = "shares";
}
