//! `POST /api/data/export`.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, HeaderValue};
use actix_web::web::Data;
use serde_json::Value;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::query_body::QueryBody;
use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::http::endpoint::{Call, Endpoint, Reader, post};
use crate::http::pieces::{Encoder, respond_in_pieces};
use crate::http::respond;
use crate::http::server::answer_budget::{AnswerBudget, HeldBytes};
use crate::http::server::request_context::lift_deadline;
use crate::http::shape::{FromJson, Place, Rule};
use crate::http::write::{ExportFormat, export_writer};
use crate::service::query::{EXPORT_BYTES, ExportName, Piece, QueryInput};
use crate::timestamp::format_timestamp_ns;

/// Members of a query that ask for a part of the rows.
const PAGING: [&str; 3] = ["limit", "offset", "cursor"];

/// Body of an export: that of a query, without the members that page, and a format.
#[derive(Debug)]
pub struct ExportBody {
    format: ExportFormat,
    query: QueryBody,
}

pub fn endpoints() -> Vec<Endpoint> {
    let export = post("/api/data/export", "exportPoints", export);
    vec![
        export
            .only_reads()
            .forwarded(|route| {
                route.takes_long = true;
                route.is_download = true;
            })
            .of_types(ExportFormat::MEDIA_TYPES)
            .writes_header(
                "Content-Disposition",
                "The body is an attachment with a file name: bucket, start of the range, extension.",
            ),
    ]
}

async fn export(call: Call<Reader, (), ExportBody>) -> Result<HttpResponse, ServiceError> {
    lift_deadline(&call.request);
    let format = call.body.format;
    let input = QueryInput {
        // Rows are points unless the query asks for something else.
        downsampling: false,
        ..call.body.query.into_input()?
    };
    let (organization, coding) = (call.caller.organization_id, respond::coding_of(&call.request));
    let answers = call.request.app_data::<Data<AnswerBudget>>().cloned();
    let admit = move || {
        let mut answers = answers.iter();
        answers.try_for_each(|answers| answers.admit(organization, EXPORT_BYTES))
    };
    let encode = move |piece, more: bool| {
        let mut encoder = Encoder::new(coding)?;
        Ok((encoder.encode(piece, more)?, encoder))
    };
    let exported = call
        .service
        .export(&call.caller, input, admit, export_writer(format), encode);
    let (name, Piece { content, rest }) = exported.await?;
    let (first, encoder) = content;
    let mut head = respond::head(StatusCode::OK, coding);
    head.content_type(format.media_type());
    let attachment = format!("attachment; filename=\"{}\"", file_name(&name, format));
    let attachment = HeaderValue::try_from(attachment).map_err(ServiceError::internal)?;
    head.insert_header((CONTENT_DISPOSITION, attachment));
    let Some(rest) = rest else {
        return Ok(head.body(first));
    };
    let mut response = respond_in_pieces(head, first, encoder, rest);
    response.extensions_mut().insert(HeldBytes(EXPORT_BYTES));
    response.extensions_mut().insert(listener::Download);
    Ok(response)
}

/// The name of the file, in characters that every system takes.
fn file_name(name: &ExportName, format: ExportFormat) -> String {
    let bucket = match plain_words(&name.bucket) {
        none if none.is_empty() => Cow::Borrowed("bucket"),
        words => Cow::Owned(words),
    };
    // ISO 8601 in its basic form, which has no colons, to the second.
    let second_ns = name.start_ns.div_euclid(SECOND_NS) * SECOND_NS;
    let start = format_timestamp_ns(second_ns);
    let start: String = start
        .as_str()
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    format!("{bucket}-{start}.{}", format.extension())
}

/// A name in ASCII letters and digits, `-` and `_`.
pub fn plain_words(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = name.split(|c: char| !plain(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

impl FromJson for ExportBody {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let object = place.object(value)?;
        let mut members = object.members.clone();
        for name in PAGING {
            if object.given(name).is_some() {
                let fault = "is not possible in an export, which has all rows; leave it out";
                place.member(name).fault(fault);
            }
            members.remove(name);
        }
        let format = object.member("format");
        let query = QueryBody::read(&Value::Object(members), place);
        Some(Self {
            format: format?,
            query: query?,
        })
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        QueryBody::rules(all);
    }
}

impl PartialSchema for ExportBody {
    fn schema() -> RefOr<Schema> {
        let reference = |name: &str| RefOr::Ref::<Schema>(Ref::from_schema_name(name));
        let mut own = ObjectBuilder::new()
            .property("format", reference(&<ExportFormat as ToSchema>::name()))
            .required("format");
        for name in PAGING {
            own = own.property(name, ObjectBuilder::new().schema_type(Type::Null));
        }
        AllOfBuilder::new()
            .item(reference(&QueryBody::name()))
            .item(own)
            .description(Some("Body of an export: a query without `limit`, `offset` and `cursor`, and the format of the file."))
            .into()
    }
}

impl ToSchema for ExportBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ExportBody")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((QueryBody::name().into_owned(), QueryBody::schema()));
        QueryBody::schemas(all);
        let format = <ExportFormat as ToSchema>::name().into_owned();
        all.push((format, ExportFormat::schema()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_every_system_takes() {
        let name = |bucket: &str, start_ns| {
            let bucket = bucket.to_owned();
            file_name(&ExportName { bucket, start_ns }, ExportFormat::Csv)
        };
        assert_eq!(name("plant", 0), "plant-19700101T000000Z.csv");
        assert_eq!(
            name("Häfen \"Nord\"/1", 1_500_000_000),
            "H-fen-Nord-1-19700101T000001Z.csv"
        );
        assert_eq!(name("港", 0), "bucket-19700101T000000Z.csv");
    }
}
