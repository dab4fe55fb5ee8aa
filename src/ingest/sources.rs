//! Which data source an entry means. Ids repeat within a batch, so each is looked up once, and recognised by
//! its 24 characters where it comes when expected: the source of the entry before, or the one behind that when
//! sources take turns.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Source, SourceStatus};
use crate::ids::ObjectId;

use super::json::Scanner;

/// A data source, and how old its points may be.
#[derive(Debug, Clone)]
pub struct SourceView {
    /// The source as the catalog has it now.
    pub source: Arc<Source>,
    /// The oldest timestamp accepted on this route.
    pub oldest_ns: i64,
}

/// Where the parser asks for data sources. Asked at most once for an id within a request.
pub trait SourceLookup {
    /// The source of this id, in whatever bucket it is.
    fn source(&mut self, id: ObjectId) -> Option<SourceView>;
}

impl<F: FnMut(ObjectId) -> Option<SourceView>> SourceLookup for F {
    fn source(&mut self, id: ObjectId) -> Option<SourceView> {
        self(id)
    }
}

/// An id that this request has named.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: ObjectId,
    text: [u8; 24],
    /// None: no such source in the body's bucket.
    pub(super) view: Option<SourceView>,
    /// Where its piece of `Scratch::orders` starts.
    pub(super) order_from: usize,
}

impl Seen {
    /// The source and its oldest timestamp, if it takes points.
    #[inline]
    pub(super) fn open(&self) -> Option<&SourceView> {
        self.view
            .as_ref()
            .filter(|view| view.source.status == SourceStatus::Active)
    }
}

/// The index in `seen` of the id that comes next in the text, if it is one of the two expected.
#[inline(always)]
pub(super) fn expected(scan: &mut Scanner<'_>, seen: &[Seen], last: usize) -> Option<usize> {
    let quoted = scan.ahead::<26>()?;
    let matches = |index: usize| seen.get(index).is_some_and(|seen| seen.text == quoted[1..25]);
    let next = if last + 1 < seen.len() { last + 1 } else { 0 };
    let index = [last, next].into_iter().find(|index| matches(*index))?;
    if quoted[0] != b'"' || quoted[25] != b'"' {
        return None;
    }
    scan.seek(scan.at() + 26);
    Some(index)
}

/// The index in `seen` of `id`; looked up where it is new.
pub(super) fn find(
    id: ObjectId,
    bucket_id: ObjectId,
    lookup: &mut dyn SourceLookup,
    (seen, by_id, orders): (&mut Vec<Seen>, &mut HashMap<ObjectId, usize>, &mut Vec<u16>),
) -> usize {
    *by_id.entry(id).or_insert_with(|| {
        // A source of another bucket is treated as one that does not exist.
        let view = lookup
            .source(id)
            .filter(|view| view.source.bucket_id == bucket_id);
        let order_from = orders.len();
        if let Some(view) = &view {
            orders.extend(view.source.schema.fields.iter().zip(0..).map(|(field, ordinal)| {
                // Comparing the text with such a name would run past the name's end; it comes escaped anyway.
                if field.name.contains(['"', '\\']) {
                    u16::MAX
                } else {
                    ordinal
                }
            }));
        }
        seen.push(Seen {
            id,
            text: id.to_hex(),
            view,
            order_from,
        });
        seen.len() - 1
    })
}
