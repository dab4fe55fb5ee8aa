//! Filters that decide row by row: by metadata, and by the values of fields.

use super::budget::Budget;
use super::check_stop;
use super::reader::RunReader;
use crate::EngineError;
use crate::block::{BlockSummary, FieldKind};
use crate::column::{Column, Values};
use crate::rows::Scalar;

/// Decides by a row's metadata (JSON text, `None` if it has none) whether the row is included.
pub type MetadataFilter<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// Decides by the value of a field whether a row is included. A row without a value of it is not.
#[derive(Clone, Copy)]
pub struct ValueFilter<'a> {
    /// The field.
    pub field: u16,
    /// Whether a row with this value is included.
    pub passes: &'a dyn Fn(Scalar<'_>) -> bool,
    /// Numbers below the first and above the second bound do not pass, so that whole blocks can be left out.
    pub bounds: (f64, f64),
}

/// Number of metadata texts filtered between calls of `stop`: a text may have kilobytes, and a block thousands of them.
const TEXTS_PER_STOP: usize = 16;

/// Whether rows of a block may be included, by its summary.
pub(super) fn may_include(filters: &[ValueFilter<'_>], summary: &BlockSummary) -> bool {
    filters.iter().all(|filter| {
        let field = summary.field(filter.field);
        field.is_some_and(|field| {
            let (least, greatest) = filter.bounds;
            let is_number = field.kind == FieldKind::Number;
            !is_number || (field.aggregate.max >= least && field.aggregate.min <= greatest)
        })
    })
}

/// The rows of a run that pass all filters.
pub(super) fn passing(
    reader: &RunReader<'_>,
    metadata: Option<MetadataFilter<'_>>,
    values: &[ValueFilter<'_>],
    stop: &dyn Fn() -> bool,
    budget: &Budget,
) -> Result<Vec<bool>, EngineError> {
    let rows = reader.rows();
    let mut decoded = budget.hold();
    let mut passes = match metadata {
        Some(filter) => {
            let column = reader.metadata()?;
            let bytes = column.as_ref().map_or(0, |column| column.memory_bytes());
            decoded.set(reader.decoded_bytes(bytes))?;
            metadata_passes(filter, column.as_deref(), rows, stop)?
        }
        None => vec![true; rows],
    };
    for filter in values {
        check_stop(stop)?;
        let Some(column) = reader.field(filter.field)? else {
            return Ok(vec![false; rows]);
        };
        decoded.set(reader.decoded_bytes(column.memory_bytes()))?;
        for (row, passes) in passes.iter_mut().enumerate() {
            *passes = *passes && column.value(row).is_some_and(filter.passes);
        }
    }
    Ok(passes)
}

/// The rows of a metadata column that pass the filter, which is called once per distinct text.
fn metadata_passes(
    filter: MetadataFilter<'_>,
    metadata: Option<&Column>,
    rows: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<bool>, EngineError> {
    let without = filter(None);
    let Some((column, Values::Texts(texts))) = metadata.map(|column| (column, &column.values)) else {
        return Ok(vec![without; rows]);
    };
    let mut passes = Vec::with_capacity(texts.dictionary.len());
    for (index, text) in texts.dictionary.iter().enumerate() {
        if index % TEXTS_PER_STOP == 0 {
            check_stop(stop)?;
        }
        passes.push(filter(Some(text)));
    }
    let rows = (0..rows).map(|row| match column.has(row) {
        true => passes[texts.codes[row] as usize],
        false => without,
    });
    Ok(rows.collect())
}
