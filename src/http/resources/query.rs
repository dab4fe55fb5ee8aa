//! `POST /api/data/query`.

use actix_web::http::StatusCode;

use super::query_body::QueryBody;
use crate::error::ServiceError;
use crate::http::docs::rows::QueryAnswerDoc;
use crate::http::endpoint::{Call, Endpoint, Querier, Written, post};
use crate::http::pieces::{self, Encoder, respond_in_pieces};
use crate::http::respond;
use crate::service::query::Answered;

pub fn endpoints() -> Vec<Endpoint> {
    vec![post("/api/data/query", "queryPoints", query)]
}

async fn query(call: Call<Querier, (), QueryBody>) -> Result<Written<QueryAnswerDoc>, ServiceError> {
    let coding = respond::coding_of(&call.request);
    let encode = move |piece, more: bool| match more {
        false => respond::encode(coding, piece).map(Begun::Whole),
        true => Encoder::new(coding)?.encode(piece, more).map(Begun::Piece),
    };
    let input = call.body.into_input()?;
    let Answered { piece, rest } = call.service.query(&call.caller, input, encode).await?;
    match (piece, rest) {
        (Begun::Whole(body), _) => Ok(respond::respond_encoded(StatusCode::OK, body).into()),
        (Begun::Piece(first), Some(rest)) => Ok(respond_in_pieces(coding, first, rest).into()),
        (Begun::Piece(_), None) => Err(ServiceError::internal("BUG: a first piece without the rest")),
    }
}

/// A complete response body, or the first piece of a streamed one.
enum Begun {
    Whole(respond::Encoded),
    Piece(pieces::Encoded),
}
