//! `POST /api/data/query`.

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};

use super::query_body::QueryBody;
use crate::error::ServiceError;
use crate::http::docs::rows::QueryAnswer;
use crate::http::endpoint::{Call, Endpoint, Querier, Written, post};
use crate::http::pieces::{Encoder, respond_in_pieces};
use crate::http::respond::{self, Encoded};
use crate::http::server::answer_budget::{AnswerBudget, PIECES_BYTES};
use crate::http::write::{write_columns, write_rows};
use crate::ids::ObjectId;
use crate::service::query::{Layout, Piece, QueryInput};
use crate::service::{Caller, Service};

pub fn endpoints() -> Vec<Endpoint> {
    vec![post("/api/data/query", "queryPoints", query).only_reads()]
}

async fn query(call: Call<Querier, (), QueryBody>) -> Result<Written<QueryAnswer>, ServiceError> {
    let input = call.body.into_input()?;
    let answer = respond_to_query(&call.service, &call.caller, &call.request, input);
    Ok(answer.await?.into())
}

/// Answers a query with its rows.
///
/// # Errors
/// As [`Service::query`].
pub async fn respond_to_query(
    service: &Service,
    caller: &Caller,
    request: &HttpRequest,
    input: QueryInput,
) -> Result<HttpResponse, ServiceError> {
    let coding = respond::coding_of(request);
    let encode = move |piece, more: bool| match more {
        false => respond::encode(coding, piece).map(FirstPiece::Whole),
        true => {
            let mut encoder = Encoder::new(coding)?;
            Ok(FirstPiece::Started(encoder.encode(piece, more)?, encoder))
        }
    };
    let admit = admission(request, caller.organization_id);
    let write = match input.layout {
        Layout::Rows => write_rows,
        Layout::Columns => write_columns,
    };
    let answer = service.query(caller, input, admit, write, encode).await?;
    let Piece { content, rest } = answer;
    match (content, rest) {
        (FirstPiece::Whole(body), _) => Ok(respond::respond_encoded(StatusCode::OK, body)),
        (FirstPiece::Started(first, encoder), Some(rest)) => {
            let head = respond::head(StatusCode::OK, coding);
            Ok(respond_in_pieces(head, first, encoder, rest))
        }
        (FirstPiece::Started(..), None) => Err(ServiceError::internal("BUG: a first piece without the rest")),
    }
}

/// Whether there is room for a large answer to the caller's organization.
fn admission(
    request: &HttpRequest,
    organization: ObjectId,
) -> impl Fn() -> Result<(), ServiceError> + Send + use<> {
    let answers = request.app_data::<Data<AnswerBudget>>().cloned();
    move || {
        answers
            .iter()
            .try_for_each(|answers| answers.admit(organization, PIECES_BYTES))
    }
}

/// A complete body, or the first piece of a streamed one.
enum FirstPiece {
    Whole(Encoded),
    Started(Bytes, Encoder),
}
