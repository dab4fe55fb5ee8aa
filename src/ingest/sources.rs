//! Finds the data source of an entry. Ids repeat within a batch and from batch to batch, so each is looked up once for each
//! version of the organization's sources. An expected id is recognized by comparing its 24 characters: the source of the
//! previous entry, or the next one if sources alternate.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Duplicates, Source, SourceStatus, SourcesVersion};
use crate::ids::ObjectId;
use crate::limits::BATCH_ENTRIES_MAX;

use super::json::Scanner;
use super::series::FindSeries;

/// A data source and the minimum timestamp of its points.
#[derive(Clone)]
pub struct SourceView {
    /// The source as currently in the catalog.
    pub source: Arc<Source>,
    /// The oldest timestamp that the route accepts.
    pub oldest_ns: i64,
    /// Finds its series, if it is split by dimensions.
    pub series: Option<Arc<dyn FindSeries>>,
}

/// Finds a source by its id, in any bucket. Called at most once per id in a pass over the body, and for sources that are
/// kept from an earlier body of the same version only to get the oldest timestamp.
pub type SourceLookup<'s> = dyn FnMut(ObjectId) -> Option<SourceView> + 's;

/// Number of sources that are kept for the next request.
const KEPT_MAX: usize = 2 * BATCH_ENTRIES_MAX;

/// The data sources whose ids occurred in this request, or in earlier ones of the same bucket and version, in the order of
/// their first entries. Collectors send the same sources again and again.
#[derive(Debug, Default)]
pub(super) struct SeenSources {
    seen: Vec<SeenSource>,
    /// The bucket and the version of the sources; `None` if they are not to be kept.
    of: Option<(ObjectId, SourcesVersion)>,
    /// Indexes in `seen`. The hash is fast: with SipHash it is noticeable if every entry names another source. A body
    /// has too few entries for collisions to matter.
    by_id: HashMap<ObjectId, usize, foldhash::fast::RandomState>,
    /// For each field of each source seen: the field at this position in the source's previous entry.
    orders: Vec<u16>,
}

#[derive(Debug)]
pub(super) struct SeenSource {
    pub(super) id: ObjectId,
    text: [u8; 24],
    /// `None`: no such source in the body's bucket.
    pub(super) view: Option<SourceView>,
    /// Start of its part of `orders`.
    order_from: usize,
}

impl std::fmt::Debug for SourceView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} from {}", self.source, self.oldest_ns)
    }
}

impl SeenSource {
    /// The source and its oldest timestamp, if it is active.
    #[inline]
    pub(super) fn active(&self) -> Option<&SourceView> {
        self.view
            .as_ref()
            .filter(|view| view.source.status == SourceStatus::Active)
    }
}

impl SeenSources {
    /// Begins a pass over a body with points of this bucket.
    pub(super) fn begin(
        &mut self,
        bucket_id: Option<ObjectId>,
        version: Option<SourcesVersion>,
        lookup: &mut SourceLookup<'_>,
    ) {
        let of = bucket_id.zip(version);
        if of.is_none() || of != self.of || !self.refresh(lookup) {
            self.clear();
            self.of = of;
        }
    }

    /// Ends a body.
    pub(super) fn end(&mut self) {
        if self.of.is_none() || self.seen.len() > KEPT_MAX {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.seen.clear();
        self.by_id.clear();
        self.orders.clear();
        self.of = None;
    }

    /// Sets the oldest timestamp, which is that of the bucket and grows with time. False if a source has gone.
    fn refresh(&mut self, lookup: &mut SourceLookup<'_>) -> bool {
        let mut views = self.seen.iter_mut().filter_map(|seen| seen.view.as_mut());
        let Some(first) = views.next() else {
            return true;
        };
        let Some(SourceView { oldest_ns, .. }) = lookup(first.source.id) else {
            return false;
        };
        first.oldest_ns = oldest_ns;
        views.for_each(|view| view.oldest_ns = oldest_ns);
        true
    }

    /// Ordinals of the sources that do not take points twice, ascending.
    pub(super) fn once(&self) -> Vec<u32> {
        let views = self.seen.iter().filter_map(|seen| seen.view.as_ref());
        let once = views.filter(|view| view.source.duplicates == Duplicates::Skip);
        let mut once: Vec<u32> = once.map(|view| view.source.ordinal).collect();
        once.sort_unstable();
        once
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&SeenSource> {
        self.seen.get(index)
    }

    /// An active source, and the order of the fields in its previous entry.
    #[inline(always)]
    pub(super) fn active_with_order(&mut self, index: usize) -> Option<(&SourceView, &mut [u16])> {
        let seen = self.seen.get(index)?;
        let view = seen.active()?;
        let order = seen.order_from..seen.order_from + view.source.schema.fields.len();
        Some((view, self.orders.get_mut(order).unwrap_or_default()))
    }

    /// The index of the source whose id comes next in the text, if it is one of the two expected ones.
    #[inline(always)]
    pub(super) fn expected(&self, scan: &mut Scanner<'_>, last: usize) -> Option<usize> {
        let quoted = scan.ahead::<26>()?;
        let matches = |index: usize| {
            self.seen
                .get(index)
                .is_some_and(|seen| seen.text == quoted[1..25])
        };
        let next = if last + 1 < self.seen.len() { last + 1 } else { 0 };
        let index = [last, next].into_iter().find(|index| matches(*index))?;
        if quoted[0] != b'"' || quoted[25] != b'"' {
            return None;
        }
        scan.seek(scan.at() + 26);
        Some(index)
    }

    /// The index of the source with this id. Looks it up if it is new.
    pub(super) fn find(&mut self, id: ObjectId, bucket_id: ObjectId, lookup: &mut SourceLookup<'_>) -> usize {
        *self.by_id.entry(id).or_insert_with(|| {
            // A source of another bucket is treated as missing.
            let view = lookup(id).filter(|view| view.source.bucket_id == bucket_id);
            let order_from = self.orders.len();
            if let Some(view) = &view {
                if view.series.is_some() {
                    // The version says nothing of the index of series.
                    self.of = None;
                }
                let fields = view.source.schema.fields.iter().zip(0..);
                self.orders.extend(fields.map(|(field, ordinal)| {
                    // A comparison with such a name could run past its end in the text. In JSON the name is escaped
                    // anyway.
                    if field.name.contains(['"', '\\']) {
                        u16::MAX
                    } else {
                        ordinal
                    }
                }));
            }
            self.seen.push(SeenSource {
                id,
                text: id.to_hex(),
                view,
                order_from,
            });
            self.seen.len() - 1
        })
    }
}
