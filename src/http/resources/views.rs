//! Types shared by several responses.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::ObjectId;

/// An object's ID and name.
#[derive(Serialize, ToSchema)]
pub struct NamedView<'a> {
    /// ID of the object.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Name of the object.
    pub name: &'a str,
}
