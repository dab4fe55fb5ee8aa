//! Reads an input's window. If a page is missing, the whole window counts as unread.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::api::{Api, DueInput, Failure};
use crate::condition::{Condition, Finding, InputFinding, Row, Scalar, Window};

/// A million rows at 10,000 per page. Rules on more rows should use groups.
const PAGES_MAX: usize = 100;

#[derive(Deserialize)]
struct Page {
    data: Vec<PageRow>,
    metadata: PageMetadata,
}

#[derive(Deserialize)]
struct PageRow {
    timestamp: String,
    values: Map<String, Value>,
    metadata: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    has_more: bool,
    next_cursor: Option<String>,
}

/// Reads and evaluates one input. A failure that waiting would not fix becomes an inconclusive finding with a reason.
///
/// # Errors
/// The key is rejected, the service is not reachable, or the evaluator was stopped.
pub async fn evaluate_input(
    api: &Api,
    condition: &Condition,
    input: DueInput,
    until: Instant,
) -> Result<InputFinding, Failure> {
    let mut evaluation = condition.clone();
    let window = read_pages(api, &input, until, |row| evaluation.add(row)).await;
    let rows = evaluation.rows;
    let finding = match window {
        Ok(window) => evaluation.finish(&window),
        Err(Failure::Rejected(cause) | Failure::Overloaded(cause)) => {
            Finding::inconclusive(format!("the window could not be read whole: {cause}"))
        }
        Err(failure) => return Err(failure),
    };
    Ok(InputFinding {
        key: input.key,
        field: input.field,
        rows,
        finding,
    })
}

/// Passes every row of the window to `add`, oldest first. The first page uses the query unchanged, the others add the
/// cursor.
async fn read_pages(
    api: &Api,
    input: &DueInput,
    until: Instant,
    mut add: impl FnMut(Row),
) -> Result<Window, Failure> {
    let mut query: Map<String, Value> = serde_json::from_str(input.query.get())
        .map_err(|cause| Failure::Rejected(format!("the query of the due list is no object: {cause}")))?;
    let mut body = input.query.get().to_owned();
    for _ in 0..PAGES_MAX {
        let answer = api.query(body, until).await?;
        let page: Page = serde_json::from_slice(&answer)
            .map_err(|cause| Failure::Rejected(format!("the answer to the query cannot be read: {cause}")))?;
        let rows = page.data.len() as u64;
        for mut row in page.data {
            add(Row {
                timestamp: row.timestamp,
                value: row.values.remove(&input.field).and_then(Scalar::of),
                metadata: row.metadata,
            });
        }
        if !page.metadata.has_more {
            return Ok(Window::of_query(&query));
        }
        if rows == 0 {
            return Err(Failure::Rejected(
                "a page without rows says there is more".to_owned(),
            ));
        }
        advance(&mut query, page.metadata.next_cursor, rows);
        body = Value::Object(query.clone()).to_string();
    }
    Err(Failure::Rejected(format!(
        "it has more than {PAGES_MAX} pages: query groups, or a shorter window"
    )))
}

/// Moves the query to the next page. A cursor replaces the offset.
fn advance(query: &mut Map<String, Value>, cursor: Option<String>, rows: u64) {
    match cursor {
        Some(cursor) => {
            query.remove("offset");
            query.insert("cursor".to_owned(), cursor.into());
        }
        None => {
            let offset = query.get("offset").and_then(Value::as_u64).unwrap_or(0);
            query.insert("offset".to_owned(), (offset + rows).into());
        }
    }
}
