//! The member `metadata` at the end of the answer to a query.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::query::{Aggregations, Answer, Groups, PageInfo};

/// Information about the rows and the pages that follow.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryMetadata {
    /// Number of rows in this response.
    pub count: u64,
    /// Aggregation as it was sent; for groups only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Aggregations>)]
    pub aggregation: Option<Value>,
    /// Step of the groups, a calendar unit or a length such as `15m`; for groups only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub group_by: Option<String>,
    /// ID of the bucket; for groups only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// Maximum number of rows in a response.
    pub limit: u64,
    /// Number of rows skipped.
    pub offset: u64,
    /// Whether more rows follow.
    pub has_more: bool,
    /// Cursor of the next page of points; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
    /// True when groups were returned instead of points because of downsampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub downsampling_applied: Option<bool>,
    /// Details of the downsampling, when it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub downsampling: Option<Downsampling>,
}

fn echo(aggregations: &Aggregations) -> Value {
    match aggregations {
        Aggregations::One(one) => Value::from(&*one.name()),
        Aggregations::Several(all) => all.iter().map(|one| one.name()).collect(),
    }
}

/// How the server downsampled a query.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Downsampling {
    /// Step that was chosen, a calendar unit or a length such as `15m`.
    pub group_by: String,
    /// Estimated number of points in the range; with `maxPoints`, the actual number.
    #[schema(value_type = f64)]
    pub expected_points: u64,
}

impl QueryMetadata {
    pub(super) fn of_points(page: &PageInfo) -> Self {
        Self {
            count: page.count as u64,
            limit: page.limit as u64,
            offset: page.offset,
            has_more: page.has_more,
            next_cursor: page.next.map(|cursor| cursor.encode()),
            ..Self::default()
        }
    }

    pub(super) fn of_groups(groups: &Groups<'_>) -> Self {
        let group_by = groups.step.to_string();
        Self {
            aggregation: Some(echo(groups.aggregations)),
            bucket_id: Some(groups.bucket_id()),
            downsampling_applied: groups.downsampled.map(|_| true),
            downsampling: groups.downsampled.map(|expected_points| Downsampling {
                group_by: group_by.clone(),
                expected_points,
            }),
            group_by: Some(group_by),
            ..Self::of_points(&groups.page)
        }
    }

    /// Writes the member, and the end of the answer.
    pub(super) fn write(&self, answer: &mut Answer<'_>) -> Result<(), ServiceError> {
        let written = answer.write(|out| {
            out.extend_from_slice(br#","metadata":"#);
            serde_json::to_writer(&mut *out, self)?;
            out.push(b'}');
            Ok::<_, serde_json::Error>(())
        })?;
        written.map_err(ServiceError::internal)
    }
}
