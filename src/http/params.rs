//! Reading paths and query strings.

use actix_web::HttpRequest;
use actix_web::web::Query;
use serde::Serialize;

use super::faults::Faults;
use crate::error::ServiceError;
use crate::ids::{MalformedId, ObjectId};
use crate::limits::{LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};
use crate::service::page::{Page, PageRequest};

/// The id in the path's segment of this name.
pub fn id(request: &HttpRequest, name: &str, faults: &mut Faults) -> Option<ObjectId> {
    let segment = request.match_info().get(name).unwrap_or_default();
    segment
        .parse()
        .map_err(|malformed: MalformedId| faults.add(&[name], malformed.to_string()))
        .ok()
}

/// The id of a path that has no other.
///
/// # Errors
/// 400.
pub fn only_id(request: &HttpRequest) -> Result<ObjectId, ServiceError> {
    let mut faults = Faults::default();
    id(request, "id", &mut faults).ok_or_else(|| faults.into_error())
}

/// `limit` and `offset` of a list.
pub fn page(request: &HttpRequest, faults: &mut Faults) -> Option<PageRequest> {
    let query = query_pairs(request, faults)?;
    let limit = integer(&query, "limit", LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX, faults);
    let offset = integer(&query, "offset", 0, 0, u64::MAX, faults);
    Some(PageRequest {
        limit: limit?,
        offset: offset?,
    })
}

/// The decoded pairs of the query string.
pub fn query_pairs(request: &HttpRequest, faults: &mut Faults) -> Option<Vec<(String, String)>> {
    match Query::<Vec<(String, String)>>::from_query(request.query_string()) {
        Ok(Query(pairs)) => Some(pairs),
        Err(_) => {
            faults.add::<&str>(&[], "the query string is malformed");
            None
        }
    }
}

/// Which part of a list.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// Most entries; 100 when absent.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u64>,
    /// Entries to pass over; 0 when absent.
    #[param(minimum = 0, maximum = 18_446_744_073_709_551_615_u64, format = "uint64")]
    pub offset: Option<u64>,
}

/// Which part of a list an answer is.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// As asked for.
    pub limit: u64,
    /// As asked for.
    pub offset: u64,
    /// Entries of the whole list.
    pub total: u64,
    /// Whether there are entries behind this page.
    pub has_more: bool,
}

impl Pagination {
    /// What the answer says about its page.
    pub fn of<T>(request: PageRequest, page: &Page<T>) -> Self {
        let seen = request.offset.saturating_add(page.entries.len() as u64);
        Self {
            limit: request.limit,
            offset: request.offset,
            total: page.total,
            has_more: seen < page.total,
        }
    }
}

/// One of a few words of the query string, by name.
pub fn one_of<T: Copy>(
    query: &[(String, String)],
    name: &str,
    default: T,
    choices: &[(&str, T)],
    faults: &mut Faults,
) -> Option<T> {
    let Some((_, word)) = query.iter().rev().find(|(found, _)| found == name) else {
        return Some(default);
    };
    let chosen = choices.iter().find(|(choice, _)| choice == word);
    if chosen.is_none() {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        faults.add(&[name], format!("must be {}, not {word:?}", names.join(" or ")));
    }
    chosen.map(|(_, choice)| *choice)
}

/// A non-negative integer of the query string.
pub fn integer(
    query: &[(String, String)],
    name: &str,
    default: u64,
    min: u64,
    max: u64,
    faults: &mut Faults,
) -> Option<u64> {
    let Some((_, text)) = query.iter().rev().find(|(found, _)| found == name) else {
        return Some(default);
    };
    // Digits alone: `parse` would take a plus sign too.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text
        .parse()
        .ok()
        .filter(|value| digits && (min..=max).contains(value));
    if value.is_none() {
        let range = if max == u64::MAX {
            format!("{min} or more")
        } else {
            format!("from {min} to {max}")
        };
        faults.add(&[name], format!("must be an integer, {range}, not {text:?}"));
    }
    value
}
