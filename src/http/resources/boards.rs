//! `/api/boards`: panels that show what queries answer, and the links that show a board to others.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, ETAG, HeaderValue, IF_MATCH};
use serde_json::json;

use super::board_body::{BoardBody, BoardPatchBody};
use super::board_views::{BoardContentView, BoardView, DeletedShareAnswer, NewShareView, ShareView};
use super::export::plain_words;
use super::views::{Many, NamedView, One, view};
use crate::catalog::Board;
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Optional, Reply, delete, get, patch, post};
use crate::http::shape::{Moment, Name, body};
use crate::ids::ObjectId;
use crate::service::boards::Versions;
use crate::service::page::PageRequest;

view! {
    /// The response to a deletion.
    pub struct DeletedBoardAnswer<'a> of(board: &'a Board) {
        /// Result in words.
        message: &'static str = "board deleted",
        /// The deleted board.
        deleted_board: NamedView<'a> = NamedView::of(board.id, &board.settings.name),
    }
}

body! {
    /// Body of a request that copies a board; may be absent.
    pub struct BoardCopyBody {
        /// Name of the copy; that of the board and `(copy)` when absent.
        name: Option<Name>,
    }
}

body! {
    /// Body of a request that makes a link to a board.
    pub struct ShareBody {
        /// When the link ends, ISO 8601: in the future, at most 366 days from now.
        expires_at: Moment,
    }
}

const TAG: &str = "The board's version, for `If-Match`.";

pub fn endpoints() -> Vec<Endpoint> {
    let if_match = json!({
        "name": "If-Match", "in": "header", "required": false,
        "schema": {"type": "string", "pattern": "^(\\*|\"[1-9][0-9]*\")$", "examples": ["\"3\""]},
        "description": "The `ETag` of the board that the change is about: 412 if it has changed since.",
    });
    vec![
        get("/api/boards", "listBoards", list),
        post("/api/boards", "createBoard", create)
            .status(StatusCode::CREATED)
            .writes_header("ETag", TAG),
        post("/api/boards/import", "importBoard", import)
            .status(StatusCode::CREATED)
            .writes_header("ETag", TAG),
        get("/api/boards/{id}", "showBoard", show).writes_header("ETag", TAG),
        patch("/api/boards/{id}", "updateBoard", update)
            .reads_header(if_match.clone())
            .writes_header("ETag", TAG),
        delete("/api/boards/{id}", "deleteBoard", remove).reads_header(if_match),
        post("/api/boards/{id}/copy", "copyBoard", copy)
            .status(StatusCode::CREATED)
            .writes_header("ETag", TAG),
        get("/api/boards/{id}/export", "exportBoard", export).writes_header(
            "Content-Disposition",
            "The body is an attachment with a file name.",
        ),
        post("/api/boards/{id}/share", "shareBoard", share).status(StatusCode::CREATED),
        get("/api/boards/{id}/shares", "listShares", list_shares),
        delete("/api/boards/{id}/shares/{shareId}", "deleteShare", unshare),
    ]
}

type BoardReply = Reply<One<BoardView<'static>>>;

/// An answer with the tag of the board.
pub fn tagged(board: &Board, answer: BoardReply) -> BoardReply {
    let mut answer = answer?;
    let tag = HeaderValue::try_from(format!("\"{}\"", board.version)).map_err(ServiceError::internal)?;
    answer.headers_mut().insert(ETAG, tag);
    Ok(answer)
}

fn changed(message: &'static str, board: &Board) -> BoardReply {
    tagged(board, Answer::changed(message, BoardView::of(board)))
}

async fn list(call: Call<Admin, PageRequest>) -> Reply<Many<BoardView<'static>>> {
    let page = call.service.list_boards(&call.caller, call.params);
    Answer::page(call.params, &page, |board| BoardView::of(board))
}

async fn create(call: Call<Admin, (), BoardBody>) -> BoardReply {
    let settings = call.body.into_settings()?;
    let board = call.service.create_board(&call.caller, settings).await?;
    changed("board created", &board)
}

async fn import(call: Call<Admin, (), BoardBody>) -> BoardReply {
    let settings = call.body.into_settings()?;
    let board = call.service.create_board(&call.caller, settings).await?;
    changed("board imported", &board)
}

async fn show(call: Call<Admin, ObjectId>) -> BoardReply {
    let board = call.service.board(&call.caller, call.params)?;
    tagged(&board, Answer::one(BoardView::of(&board)))
}

async fn update(call: Call<Admin, ObjectId, BoardPatchBody>) -> BoardReply {
    let (versions, body) = (versions_of(&call.request), call.body);
    let change = call
        .service
        .update_board(&call.caller, call.params, &versions, |known| {
            body.applied_to(known)
        });
    changed("board updated", &*change.await?)
}

async fn remove(call: Call<Admin, ObjectId>) -> Reply<DeletedBoardAnswer<'static>> {
    let versions = versions_of(&call.request);
    let removal = call.service.delete_board(&call.caller, call.params, &versions);
    Answer::of(&DeletedBoardAnswer::of(&*removal.await?))
}

async fn copy(call: Call<Admin, ObjectId, Optional<BoardCopyBody>>) -> BoardReply {
    let name = call.body.0.and_then(|body| body.name).map(|name| name.0);
    let board = call.service.copy_board(&call.caller, call.params, name).await?;
    changed("board copied", &board)
}

async fn export(call: Call<Admin, ObjectId>) -> Reply<BoardContentView<'static>> {
    let board = call.service.board(&call.caller, call.params)?;
    let mut answer = Answer::of(&BoardContentView::of(&board.settings))?;
    let attachment = format!("attachment; filename=\"{}\"", file_name(&board.settings.name));
    let attachment = HeaderValue::try_from(attachment).map_err(ServiceError::internal)?;
    answer.headers_mut().insert(CONTENT_DISPOSITION, attachment);
    Ok(answer)
}

async fn share(call: Call<Admin, ObjectId, ShareBody>) -> Reply<One<NewShareView<'static>>> {
    let expires_at_ns = call.body.expires_at.0;
    let created = call.service.share_board(&call.caller, call.params, expires_at_ns);
    let created = created.await?;
    let origin = origin_of(
        &call.request,
        call.service.config.server.tls_certificate.is_some(),
    );
    let share = NewShareView::of(&created.share, &created.token, &origin);
    Answer::changed("link made; its token is not shown again", share)
}

async fn list_shares(call: Call<Admin, (ObjectId, PageRequest)>) -> Reply<Many<ShareView>> {
    let (board_id, page_request) = call.params;
    let page = call.service.list_shares(&call.caller, board_id, page_request)?;
    Answer::page(page_request, &page, ShareView::of)
}

async fn unshare(call: Call<Admin, (ObjectId, ObjectId)>) -> Reply<DeletedShareAnswer> {
    let (board_id, share_id) = call.params;
    let removal = call.service.unshare_board(&call.caller, board_id, share_id);
    Answer::of(&DeletedShareAnswer::of(&removal.await?))
}

/// The versions that `If-Match` names (RFC 9110, 13.1.1). A tag of another form is that of no board.
fn versions_of(request: &HttpRequest) -> Versions {
    let mut headers = request.headers().get_all(IF_MATCH).peekable();
    if headers.peek().is_none() {
        return Versions::Any;
    }
    let tags = headers.filter_map(|header| header.to_str().ok());
    let tags: Vec<&str> = tags.flat_map(|header| header.split(',')).map(str::trim).collect();
    if tags.contains(&"*") {
        return Versions::Any;
    }
    let version = |tag: &str| {
        let number = tag.strip_prefix('"')?.strip_suffix('"')?;
        let version: u64 = number.parse().ok()?;
        (version.to_string() == number).then_some(version)
    };
    Versions::OneOf(tags.into_iter().filter_map(version).collect())
}

/// The name of a board as that of a file, in characters that every system takes.
fn file_name(name: &str) -> String {
    match plain_words(name) {
        none if none.is_empty() => "board.json".to_owned(),
        words => format!("{words}.json"),
    }
}

/// The address by which the client has reached the server.
fn origin_of(request: &HttpRequest, is_encrypted: bool) -> String {
    let connection = request.connection_info();
    let scheme = match is_encrypted {
        true => "https",
        false => connection.scheme(),
    };
    format!("{scheme}://{}", connection.host())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn versions_are_those_of_all_tags_of_a_boards_form() {
        let versions = |headers: &[&'static str]| {
            let mut request = TestRequest::default();
            for header in headers {
                request = request.append_header((IF_MATCH, *header));
            }
            versions_of(&request.to_http_request())
        };
        assert_eq!(versions(&[]), Versions::Any);
        assert_eq!(versions(&["*"]), Versions::Any);
        assert_eq!(versions(&["\"3\""]), Versions::OneOf(vec![3]));
        assert_eq!(
            versions(&["\"3\", \"5\"", "\"9\""]),
            Versions::OneOf(vec![3, 5, 9])
        );
        for other in ["", "3", "W/\"3\"", "\"03\"", "\"+3\"", "\"three\"", "\"-1\""] {
            assert_eq!(versions(&[other]), Versions::OneOf(vec![]), "{other}");
        }
    }

    #[test]
    fn file_names_have_no_characters_with_a_meaning() {
        assert_eq!(file_name("Plant / Hall 3"), "Plant-Hall-3.json");
        assert_eq!(file_name("\"../x\"\r\n"), "x.json");
        assert_eq!(file_name("Öl"), "l.json");
        assert_eq!(file_name("水"), "board.json");
    }
}
