//! Parts that several answers share.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::ObjectId;

/// An id with the name that goes with it.
#[derive(Serialize, ToSchema)]
pub struct NamedView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
}
