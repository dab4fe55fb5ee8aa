//! `POST /api/data/query`.

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};

use super::query_body::QueryBody;
use crate::error::ServiceError;
use crate::http::docs::rows::QueryAnswer;
use crate::http::endpoint::{Call, Endpoint, Querier, Written, post};
use crate::http::pieces::{Encoder, respond_in_pieces};
use crate::http::respond::{self, Encoded};
use crate::http::server::answer_budget::AnswerBudget;
use crate::http::write::{write_columns, write_rows};
use crate::service::query::{Layout, Piece};

pub fn endpoints() -> Vec<Endpoint> {
    vec![post("/api/data/query", "queryPoints", query)]
}

async fn query(call: Call<Querier, (), QueryBody>) -> Result<Written<QueryAnswer>, ServiceError> {
    let coding = respond::coding_of(&call.request);
    let encode = move |piece, more: bool| match more {
        false => respond::encode(coding, piece).map(FirstPiece::Whole),
        true => {
            let mut encoder = Encoder::new(coding)?;
            Ok(FirstPiece::Started(encoder.encode(piece, more)?, encoder))
        }
    };
    let admit = admission(&call);
    let input = call.body.into_input()?;
    let write = match input.layout {
        Layout::Rows => write_rows,
        Layout::Columns => write_columns,
    };
    let answer = call
        .service
        .query(&call.caller, input, admit, write, encode)
        .await?;
    let Piece { content, rest } = answer;
    match (content, rest) {
        (FirstPiece::Whole(body), _) => Ok(respond::respond_encoded(StatusCode::OK, body).into()),
        (FirstPiece::Started(first, encoder), Some(rest)) => {
            Ok(respond_in_pieces(coding, first, encoder, rest).into())
        }
        (FirstPiece::Started(..), None) => Err(ServiceError::internal("BUG: a first piece without the rest")),
    }
}

/// Whether there is room for a large answer to the caller's organization.
fn admission(call: &Call<Querier, (), QueryBody>) -> impl Fn() -> Result<(), ServiceError> + Send + use<> {
    let answers = call.request.app_data::<Data<AnswerBudget>>().cloned();
    let organization = call.caller.organization_id;
    move || answers.iter().try_for_each(|answers| answers.admit(organization))
}

/// A complete body, or the first piece of a streamed one.
enum FirstPiece {
    Whole(Encoded),
    Started(Bytes, Encoder),
}
