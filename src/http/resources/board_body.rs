//! Boards as they are sent.

use std::collections::HashSet;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use super::board_views::BoardContentView;
use super::evaluation_body::Key;
use super::panel_query::{Declared, PanelQuery, check_query};
use super::query_body::{ZoneName, start_is_before_end};
use crate::catalog::{BoardRange, BoardSettings, Level, Panel, PanelKind, Threshold, Variable};
use crate::error::{Detail, ServiceError};
use crate::http::shape::{
    Faults, Finite, FromJson, Integer, List, Moment, Name, Object, Patch, Place, Rule, Text, body, described,
};
use crate::limits::{
    BOARD_BYTES_MAX, BOARD_COLUMNS, BOARD_PANELS_MAX, BOARD_REFRESH_SECONDS, BOARD_VARIABLES_MAX,
    PANEL_DECIMALS_MAX, PANEL_ROW_MAX, PANEL_ROWS_MAX, PANEL_THRESHOLDS_MAX, PANEL_TITLE_CHARS_MAX,
    PANEL_UNIT_CHARS_MAX, VARIABLE_VALUE_CHARS_MAX, VARIABLE_VALUES_MAX,
};
use crate::service::query::length_seconds;

type Refresh = Integer<{ BOARD_REFRESH_SECONDS.0 }, { BOARD_REFRESH_SECONDS.1 }>;
type Variables = List<VariableBody, 0, BOARD_VARIABLES_MAX>;
type VariableValue = Text<VARIABLE_VALUE_CHARS_MAX>;
type VariableValues = List<VariableValue, 0, VARIABLE_VALUES_MAX>;
type Panels = List<PanelBody, 0, BOARD_PANELS_MAX>;
type PanelTitle = Text<PANEL_TITLE_CHARS_MAX>;
type PanelUnit = Text<PANEL_UNIT_CHARS_MAX>;
type Decimals = Integer<0, PANEL_DECIMALS_MAX>;
type Thresholds = List<ThresholdBody, 0, PANEL_THRESHOLDS_MAX>;
type Column = Integer<0, { BOARD_COLUMNS - 1 }>;
type Columns = Integer<1, BOARD_COLUMNS>;
type Row = Integer<0, PANEL_ROW_MAX>;
type Rows = Integer<1, PANEL_ROWS_MAX>;

body! {
    /// Body of a request that creates or imports a board.
    pub struct BoardBody {
        /// Name of the board; need not be unique.
        name: Name,
        /// The range of time that the board shows.
        range: RangeBody,
        /// Time zone: a name of the IANA database; that of the reader when absent.
        #[schema(value_type = Option<String>, example = "Europe/Stockholm")]
        timezone: Option<ZoneName>,
        /// Seconds after which an open board reads its panels again; never when absent.
        refresh_seconds: Option<Refresh>,
        /// Texts that the reader chooses. In a panel's query, a string that is exactly `"$name"` stands for one.
        variables: Option<Variables>,
        /// The panels, in any order.
        panels: Panels,
    }
    rules [Rule::Values(names_are_unique), Rule::Values(queries_are_valid)]
}

body! {
    /// Body of a request that changes a board; absent members keep their values, the others are replaced whole.
    pub struct BoardPatchBody {
        /// Name of the board; need not be unique.
        name: Option<Name>,
        /// The range of time that the board shows.
        range: Option<RangeBody>,
        /// Time zone: a name of the IANA database; null for that of the reader.
        #[schema(value_type = Option<String>, example = "Europe/Stockholm")]
        timezone: Patch<ZoneName>,
        /// Seconds after which an open board reads its panels again; null for never.
        #[schema(value_type = Option<Refresh>)]
        refresh_seconds: Patch<Refresh>,
        /// Texts that the reader chooses.
        #[schema(value_type = Option<Variables>)]
        variables: Patch<Variables>,
        /// The panels, in any order.
        panels: Option<Panels>,
    }
    rules [Rule::Values(names_are_unique), Rule::Values(queries_may_be_valid)]
}

body! {
    /// Both ends of a range.
    #[schema(as = BoardBounds)]
    pub struct BoundsBody {
        /// Start of the range, ISO 8601, inclusive.
        start_time: Moment,
        /// End of the range, ISO 8601, inclusive.
        end_time: Moment,
    }
    rules [Rule::Values(start_is_before_end)]
}

body! {
    /// A text that the reader of a board chooses.
    #[schema(as = NewVariable)]
    pub struct VariableBody {
        /// Name: a letter, then letters, digits and underscores; unique within the board.
        name: Key,
        /// Its value until the reader chooses another one.
        default: Option<VariableValue>,
        /// The choices; any text when absent.
        values: Option<VariableValues>,
    }
}

body! {
    /// A part of a board, with the place that it takes in a grid of 12 columns.
    #[schema(as = NewPanel)]
    pub struct PanelBody {
        /// Title; may be empty.
        title: PanelTitle,
        /// How it shows its values.
        kind: PanelKind,
        /// What it shows: a body of `POST /api/data/query`; bounds that it leaves out are those of the board's range. Of
        /// the kind `rules`: the bucket alone, as `bucketId`. Whether what it names exists is not checked.
        query: PanelQuery,
        /// Unit of the values, to be shown.
        unit: Option<PanelUnit>,
        /// Digits behind the point.
        decimals: Option<Decimals>,
        /// From which value on values are good, call for attention, or are critical.
        thresholds: Option<Thresholds>,
        /// First column, from 0.
        x: Column,
        /// First row, from 0.
        y: Row,
        /// Columns; `x` and `w` add up to 12 at most.
        w: Columns,
        /// Rows.
        h: Rows,
    }
    rules [Rule::Values(fits_the_grid)]
}

body! {
    /// From this value on, up to the next threshold, values have this level.
    #[schema(as = NewThreshold)]
    pub struct ThresholdBody {
        /// The least value of the level.
        value: Finite,
        /// The level.
        level: Level,
    }
}

/// A length such as `24h`, or both ends.
#[derive(Debug)]
pub enum RangeBody {
    Last(String),
    Between(BoundsBody),
}

impl FromJson for RangeBody {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let Some(length) = value.as_str() else {
            return match value.is_object() {
                true => BoundsBody::read(value, place).map(Self::Between),
                false => {
                    place.fault("must be a length such as 24h, or an object with startTime and endTime");
                    None
                }
            };
        };
        if length_seconds(length).is_none() {
            place.fault(format!(
                "must be a length such as 24h (units s, m, h, d, w; at most 52w), or an object with startTime and \
                 endTime, not {length:?}"
            ));
            return None;
        }
        Some(Self::Last(length.to_owned()))
    }
}

impl PartialSchema for RangeBody {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        OneOfBuilder::new()
            .item(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some(
                        "The time before now: a length such as `24h`, from `1s` to `52w`.",
                    ))
                    .pattern(Some("^[1-9][0-9]*[smhdw]$")),
            )
            .item(BoundsBody::schema())
            .into()
    }
}

impl ToSchema for RangeBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "NewBoardRange".into()
    }

    fn schemas(all: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        BoundsBody::schemas(all);
    }
}

fn names_are_unique(board: &Object<'_>) {
    let mut names = HashSet::new();
    let variables = board.given("variables").and_then(Value::as_array);
    for (index, variable) in variables.into_iter().flatten().enumerate() {
        if let Some(name) = variable.get("name").and_then(Value::as_str)
            && !names.insert(name)
        {
            let variables = board.place.member("variables");
            let message = format!("must be unique within the board; {name:?} is there twice");
            variables.index(index).member("name").fault(message);
        }
    }
}

fn queries_are_valid(board: &Object<'_>) {
    let variables = board.given("variables").and_then(Value::as_array);
    let names = variables
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("name")?.as_str());
    check_panels(board, &Declared::These(names.collect()));
}

/// Of a change that does not name the variables, any of them may be there; the board that it makes is checked again.
fn queries_may_be_valid(board: &Object<'_>) {
    match board.members.contains_key("variables") {
        true => queries_are_valid(board),
        false => check_panels(board, &Declared::Any),
    }
}

fn check_panels(board: &Object<'_>, variables: &Declared<'_>) {
    let panels = board.given("panels").and_then(Value::as_array);
    let place = board.place.member("panels");
    for (index, panel) in panels.into_iter().flatten().enumerate() {
        let kind = panel.get("kind").and_then(Value::as_str);
        let kind = PanelKind::ALL.into_iter().find(|it| Some(it.name()) == kind);
        if let (Some(kind), Some(query)) = (kind, panel.get("query")) {
            check_query(kind, query, variables, &place.index(index).member("query"));
        }
    }
}

fn fits_the_grid(panel: &Object<'_>) {
    let number = |name: &str| panel.given(name).and_then(Value::as_f64);
    if let (Some(x), Some(w)) = (number("x"), number("w"))
        && (0.0..BOARD_COLUMNS as f64).contains(&x)
        && (1.0..=BOARD_COLUMNS as f64).contains(&w)
        && x + w > BOARD_COLUMNS as f64
    {
        let message = format!("ends behind column {BOARD_COLUMNS}: x and w add up to {}", x + w);
        panel.place.member("w").fault(message);
    }
}

impl BoardBody {
    /// The board's settings.
    ///
    /// # Errors
    /// 400 for a board of too many bytes.
    pub fn into_settings(self) -> Result<BoardSettings, ServiceError> {
        bounded(BoardSettings {
            name: self.name.0.into(),
            range: self.range.into(),
            timezone: self.timezone.map(|zone| zone.name.into()),
            refresh_seconds: self.refresh_seconds.map(|seconds| seconds.0 as u32),
            variables: self.variables.map(variables_of).unwrap_or_default(),
            panels: panels_of(self.panels),
        })
    }
}

impl BoardPatchBody {
    /// The settings of a board after the change.
    ///
    /// # Errors
    /// 400 for queries that name variables which the board does not have, and for a board of too many bytes.
    pub fn applied_to(self, known: &BoardSettings) -> Result<BoardSettings, ServiceError> {
        let refresh_seconds = self.refresh_seconds.map(|seconds| seconds.0 as u32);
        let changes_queries = self.panels.is_some() || self.variables.0.is_some();
        let variables = self
            .variables
            .0
            .map(|it| it.map(variables_of).unwrap_or_default());
        let settings = BoardSettings {
            name: self.name.map_or_else(|| known.name.clone(), |name| name.0.into()),
            range: self.range.map_or_else(|| known.range.clone(), Into::into),
            timezone: self
                .timezone
                .map(|zone| zone.name.into())
                .unwrap_or_else(|| known.timezone.clone()),
            refresh_seconds: refresh_seconds.unwrap_or(known.refresh_seconds),
            variables: variables.unwrap_or_else(|| known.variables.clone()),
            panels: self.panels.map_or_else(|| known.panels.clone(), panels_of),
        };
        if changes_queries {
            check_queries_of(&settings)?;
        }
        bounded(settings)
    }
}

/// Checks the queries of a whole board.
fn check_queries_of(settings: &BoardSettings) -> Result<(), ServiceError> {
    let names = settings.variables.iter().map(|variable| &*variable.name);
    let declared = Declared::These(names.collect());
    let faults = Faults::default();
    for (index, panel) in settings.panels.iter().enumerate() {
        let query = serde_json::from_str(&panel.query).map_err(ServiceError::internal)?;
        let (root, kind) = (faults.root(), panel.kind);
        let panels = root.member("panels");
        check_query(kind, &query, &declared, &panels.index(index).member("query"));
    }
    faults.check()
}

/// The settings, unless they are too large to be imported again.
fn bounded(settings: BoardSettings) -> Result<BoardSettings, ServiceError> {
    let bytes = serde_json::to_vec(&BoardContentView::of(&settings)).map_err(ServiceError::internal)?;
    if bytes.len() > BOARD_BYTES_MAX {
        let message = format!(
            "make a board of {} bytes as JSON, which may have {BOARD_BYTES_MAX}; shorten queries, or make several boards",
            bytes.len()
        );
        return Err(ServiceError::faults(vec![Detail::at(&["panels"], message)]));
    }
    Ok(settings)
}

fn variables_of(variables: Variables) -> Vec<Variable> {
    let variables = variables.0.into_iter().map(|variable| Variable {
        name: variable.name.0.into(),
        default: variable.default.map(|text| text.0.into()),
        values: variable
            .values
            .map(|values| values.0.into_iter().map(|text| text.0.into()).collect()),
    });
    variables.collect()
}

fn panels_of(panels: Panels) -> Vec<Panel> {
    panels.0.into_iter().map(Into::into).collect()
}

impl From<RangeBody> for BoardRange {
    fn from(range: RangeBody) -> Self {
        match range {
            RangeBody::Last(length) => Self::Last(length.into()),
            RangeBody::Between(bounds) => Self::Between {
                start_ns: bounds.start_time.0,
                end_ns: bounds.end_time.0,
            },
        }
    }
}

impl From<PanelBody> for Panel {
    /// The numbers are within the bounds of their types.
    fn from(panel: PanelBody) -> Self {
        let threshold = |it: ThresholdBody| Threshold {
            value: it.value.0,
            level: it.level,
        };
        Self {
            title: panel.title.0.into(),
            kind: panel.kind,
            query: panel.query.0.to_string().into(),
            unit: panel.unit.map(|unit| unit.0.into()),
            decimals: panel.decimals.map(|decimals| decimals.0 as u8),
            thresholds: panel
                .thresholds
                .map(|thresholds| thresholds.0.into_iter().map(threshold).collect()),
            x: panel.x.0 as u8,
            y: panel.y.0 as u16,
            w: panel.w.0 as u8,
            h: panel.h.0 as u8,
        }
    }
}

described!(
    PanelQuery,
    "PanelQuery",
    ObjectBuilder::new().schema_type(Type::Object).description(Some(
        "A body of a query, in which variables may stand, or, of rules, `bucketId`."
    ))
);

const _: () = assert!(BOARD_COLUMNS == 12, "as described");
