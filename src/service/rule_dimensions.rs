//! The dimensions that inputs of rules name. They are looked up before a rule is decided, because that may read files.

use std::sync::Arc;

use super::Service;
use super::query::{available_dimensions, has_dimension};
use crate::bucket::IndexedView;
use crate::catalog::{Evaluation, RuleSettings, Source};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;

impl Service {
    /// Finds names of dimensions that the sources of a rule's inputs do not have.
    pub(super) async fn input_faults(
        &self,
        bucket_id: ObjectId,
        source_id: ObjectId,
        settings: &RuleSettings,
    ) -> Result<Vec<Detail>, ServiceError> {
        let names_any = |evaluation: &&Evaluation| {
            let mut inputs = evaluation.inputs.iter();
            inputs.any(|input| input.dimensions.is_some() || !input.group_by_dimensions.is_empty())
        };
        let Some(evaluation) = settings.evaluation.as_ref().filter(names_any) else {
            return Ok(Vec::new());
        };
        // What does not exist is a fault of its own.
        let (bucket, sources) = self.catalog.read(|catalog| {
            let sources = evaluation.inputs.iter().map(|input| {
                let source = catalog.source(input.source_id.unwrap_or(source_id));
                source.filter(|source| source.bucket_id == bucket_id).cloned()
            });
            (catalog.bucket(bucket_id).cloned(), sources.collect::<Vec<_>>())
        });
        let Some(bucket) = bucket else {
            return Ok(Vec::new());
        };
        let indexed = self.buckets.indexed_view(&bucket)?;
        let (cutoff_ns, evaluation) = (bucket.retention_cutoff_ns(self.now_ns()), evaluation.clone());
        let look_up = move || faults(&sources, &evaluation, &indexed, cutoff_ns);
        tokio::task::spawn_blocking(look_up)
            .await
            .map_err(ServiceError::internal)?
    }
}

fn faults(
    sources: &[Option<Arc<Source>>],
    evaluation: &Evaluation,
    indexed: &IndexedView,
    cutoff_ns: i64,
) -> Result<Vec<Detail>, ServiceError> {
    let mut faults = Vec::new();
    for ((index, input), source) in evaluation.inputs.iter().enumerate().zip(sources) {
        let Some(source) = source else { continue };
        for (name, path) in input.dimension_names() {
            if !has_dimension(source, &name, indexed, cutoff_ns)? {
                let available = available_dimensions([source], indexed, cutoff_ns)?;
                let at_input = ["evaluation".to_owned(), "inputs".to_owned(), index.to_string()];
                faults.push(Detail {
                    path: at_input.into_iter().chain(path).collect(),
                    message: format!("the data source has no dimension {name:?}; available: {available}"),
                });
            }
        }
    }
    Ok(faults)
}
