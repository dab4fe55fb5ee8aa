//! Reads an input's window. If a page is missing, the whole window counts as unread.

use actix_web::web::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::calls::{Calls, DueInput, Failure};
use super::judge::{Condition, Finding, InputFinding, Row, Scalar, Window};

/// A million rows at 10,000 per page. Rules on more rows should use groups.
const PAGES_MAX: usize = 100;

/// Why a rule gets no verdict now.
#[derive(Debug)]
pub enum Interruption {
    /// The service rejected the key.
    Refused(String),
    /// The service is not reachable; the rule stays due.
    Unreachable(String),
    /// The evaluator was stopped.
    Stopped,
}

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
/// See [`Interruption`].
pub async fn judge_input(
    calls: &Calls,
    condition: &Condition,
    input: DueInput,
    until: Instant,
) -> Result<InputFinding, Interruption> {
    let mut judge = condition.judge();
    let mut rows = 0;
    let see = |row| {
        rows += 1;
        judge.see(row);
    };
    let finding = match read_pages(calls, &input, until, see).await {
        Ok(window) => judge.conclude(&window),
        Err(Failure::Refused(message)) => return Err(Interruption::Refused(message)),
        Err(Failure::Unreachable(cause)) => return Err(Interruption::Unreachable(cause)),
        Err(Failure::Stopped) => return Err(Interruption::Stopped),
        Err(Failure::Rejected(cause) | Failure::Overloaded(cause)) => {
            Finding::inconclusive(format!("the window could not be read whole: {cause}"))
        }
    };
    Ok(InputFinding {
        key: input.key,
        field: input.field,
        rows,
        finding,
    })
}

/// Passes every row of the window to `see`, oldest first. The first page uses the query unchanged, the others add the
/// cursor.
async fn read_pages(
    calls: &Calls,
    input: &DueInput,
    until: Instant,
    mut see: impl FnMut(Row),
) -> Result<Window, Failure> {
    let mut query: Map<String, Value> = serde_json::from_str(input.query.get())
        .map_err(|cause| Failure::Rejected(format!("the query of the due list is no object: {cause}")))?;
    let mut body = input.query.get().to_owned();
    for _ in 0..PAGES_MAX {
        let page = read_page(&calls.query(body, until).await?)?;
        let read = page.data.len() as u64;
        for mut row in page.data {
            see(Row {
                timestamp: row.timestamp,
                value: row.values.remove(&input.field).and_then(Scalar::of),
                metadata: row.metadata,
            });
        }
        if !page.metadata.has_more {
            return Ok(Window::of_query(&query));
        }
        if read == 0 {
            return Err(Failure::Rejected(
                "a page without rows says there is more".to_owned(),
            ));
        }
        go_on(&mut query, page.metadata.next_cursor, read);
        body = Value::Object(query.clone()).to_string();
    }
    Err(Failure::Rejected(format!(
        "it has more than {PAGES_MAX} pages: query groups, or a shorter window"
    )))
}

fn read_page(body: &Bytes) -> Result<Page, Failure> {
    serde_json::from_slice(body)
        .map_err(|cause| Failure::Rejected(format!("the answer to the query cannot be read: {cause}")))
}

/// Moves the query to the next page. A cursor replaces the offset.
fn go_on(query: &mut Map<String, Value>, cursor: Option<String>, read: u64) {
    match cursor {
        Some(cursor) => {
            query.remove("offset");
            query.insert("cursor".to_owned(), cursor.into());
        }
        None => {
            let offset = query.get("offset").and_then(Value::as_u64).unwrap_or(0);
            query.insert("offset".to_owned(), (offset + read).into());
        }
    }
}
