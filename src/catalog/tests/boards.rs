//! Boards: their order and versions, and their links.

use super::super::*;
use super::{check_indexes, id, with_bucket};
use crate::ids::ObjectId;

/// A board with a panel and a variable.
pub(super) fn board(number: u64, organization_id: ObjectId, created_at_ns: i64) -> Board {
    Board {
        id: id(number),
        organization_id,
        settings: board_settings(&format!("board {number}")),
        version: 1,
        created_at_ns,
        updated_at_ns: created_at_ns,
        shares: Vec::new(),
    }
}

pub(super) fn board_settings(name: &str) -> BoardSettings {
    let threshold = |value, level| Threshold { value, level };
    let variable = Variable {
        name: "pump".into(),
        default: Some("north".into()),
        values: Some(vec!["north".into(), "south".into()]),
    };
    let panel = Panel {
        title: "level".into(),
        kind: PanelKind::Lines,
        query: r#"{"bucketId":"$pump"}"#.into(),
        unit: Some("m".into()),
        decimals: Some(2),
        thresholds: Some(vec![
            threshold(-0.5, Level::Good),
            threshold(7.0, Level::Critical),
        ]),
        x: 6,
        y: 300,
        w: 6,
        h: 4,
    };
    BoardSettings {
        name: name.into(),
        range: BoardRange::Last("6h".into()),
        timezone: Some("Europe/Stockholm".into()),
        refresh_seconds: Some(30),
        variables: vec![variable],
        panels: vec![panel],
    }
}

pub(super) fn share(number: u64, created_at_ns: i64, expires_at_ns: i64) -> Share {
    Share {
        id: id(number),
        hash: Bytes([number as u8; 32]),
        expires_at_ns,
        created_at_ns,
    }
}

fn create(catalog: &mut Catalog, board: Board) {
    catalog.apply(&Command::BoardCreated { board });
}

fn share_board(catalog: &mut Catalog, board: u64, share: &Share) {
    catalog.apply(&Command::BoardShared {
        board_id: id(board),
        share: share.clone(),
    });
}

/// The board that a link shows.
fn shown(catalog: &Catalog, share: &Share) -> Option<ObjectId> {
    let (board, found) = catalog.board_by_share(&share.hash)?;
    assert_eq!(found, share);
    Some(board.id)
}

#[test]
fn boards_keep_their_order_and_count_their_versions() {
    let mut catalog = with_bucket();
    let empty = catalog.holdings(id(1));
    for number in [89, 80, 85] {
        create(&mut catalog, board(number, id(1), 5));
    }
    create(&mut catalog, board(86, id(999), 5));
    assert!(catalog.board(id(86)).is_none(), "of no organization");
    let settings = board_settings("a longer name than before");
    for at_ns in [8, 9] {
        catalog.apply(&Command::BoardUpdated {
            board_id: id(80),
            settings: settings.clone(),
            at_ns,
        });
    }
    let changed = catalog.board(id(80)).unwrap();
    assert_eq!(
        (changed.version, changed.created_at_ns, changed.updated_at_ns),
        (3, 5, 9)
    );
    assert_eq!(changed.settings, settings);
    let listed: Vec<_> = catalog.boards_of(id(1)).map(|board| board.id).collect();
    assert_eq!(listed, [id(89), id(80), id(85)]);
    check_indexes(&catalog);
    for number in [80, 85, 89, 89] {
        catalog.apply(&Command::BoardDeleted { board_id: id(number) });
    }
    assert_eq!(catalog.board_count(id(1)), 0);
    assert_eq!(catalog.holdings(id(1)), empty);
    check_indexes(&catalog);
}

#[test]
fn links_show_their_board_until_they_are_removed_with_it_or_without() {
    let mut catalog = with_bucket();
    create(&mut catalog, board(80, id(1), 5));
    create(&mut catalog, board(81, id(1), 5));
    let [short, long, later, other] = [
        share(1, 5, 10),
        share(2, 5, 99),
        share(3, 10, 99),
        share(4, 6, 99),
    ];
    for share in [&short, &long] {
        share_board(&mut catalog, 80, share);
    }
    share_board(&mut catalog, 81, &other);
    share_board(&mut catalog, 999, &later);
    assert_eq!(shown(&catalog, &later), None, "a link to no board");
    assert_eq!(
        shown(&catalog, &short),
        Some(id(80)),
        "whether it has expired is asked elsewhere"
    );
    assert!(!short.has_expired(9) && short.has_expired(10));
    let version = |catalog: &Catalog| catalog.board(id(80)).unwrap().version;
    share_board(&mut catalog, 80, &later);
    assert_eq!(version(&catalog), 1, "a link is no change of the board");
    assert_eq!(
        shown(&catalog, &short),
        None,
        "a new link removes those that have expired"
    );
    assert_eq!(
        catalog.board(id(80)).unwrap().shares,
        [long.clone(), later.clone()]
    );
    catalog.apply(&Command::BoardUnshared {
        board_id: id(81),
        share_id: later.id,
    });
    assert_eq!(shown(&catalog, &later), Some(id(80)), "the link of another board");
    catalog.apply(&Command::BoardUnshared {
        board_id: id(80),
        share_id: later.id,
    });
    assert_eq!(shown(&catalog, &later), None);
    assert_eq!(shown(&catalog, &long), Some(id(80)));
    catalog.apply(&Command::BoardDeleted { board_id: id(80) });
    assert_eq!(shown(&catalog, &long), None, "it ends with its board");
    assert_eq!(shown(&catalog, &other), Some(id(81)));
    check_indexes(&catalog);
}
