//! Members, invitations, resets and sessions: what finds them, and what ends them.

use super::super::*;
use super::{id, password, with_bucket};
use crate::clock::MINUTE_NS;

/// Members, open invitations and resets are found by each of their indexes, and by nothing else.
pub(super) fn check_indexes(catalog: &Catalog) {
    let mut members = 0;
    let (mut invitations, mut resets) = (0, 0);
    for organization in catalog.organizations() {
        for user in catalog.members_of(organization.id) {
            assert_eq!(user.organization_id, organization.id);
            assert_eq!(catalog.user_by_email(&user.email), Some(user));
            if let Some(reset) = &user.reset {
                assert_eq!(catalog.user_by_reset(&reset.hash), Some(user));
                resets += 1;
            }
            members += 1;
        }
        for invitation in &organization.invitations {
            let (of, found) = catalog.invitation_by_hash(&invitation.hash).unwrap();
            assert_eq!((of.id, found), (organization.id, invitation));
            invitations += 1;
        }
    }
    assert_eq!(catalog.users().count(), members);
    assert_eq!(catalog.user_by_email.len(), members);
    assert_eq!(catalog.user_by_reset.len(), resets);
    assert_eq!(catalog.invitation_by_hash.len(), invitations);
}

pub(super) fn invitation(number: u64, email: &str, role: Role) -> Invitation {
    Invitation {
        id: id(number),
        email: email.into(),
        role,
        hash: Bytes([number as u8; 32]),
        created_at_ns: number as i64,
        created_by: id(2),
        expires_at_ns: 1_000,
    }
}

fn invite(catalog: &mut Catalog, invitation: Invitation) {
    catalog.apply(&Command::InvitationCreated {
        organization_id: id(1),
        invitation,
    });
}

pub(super) fn accept(catalog: &mut Catalog, invitation: u64, user: u64, email: &str, role: Role) {
    let user = User {
        role,
        ..User::new(id(user), id(1), email, "b", password(1), user as i64)
    };
    catalog.apply(&Command::InvitationAccepted {
        invitation_id: id(invitation),
        user,
    });
}

#[test]
fn an_invitation_is_used_once_and_only_while_it_is_there() {
    let mut catalog = with_bucket();
    let before = catalog.holdings(id(1));
    invite(&mut catalog, invitation(20, "b@example.com", Role::Viewer));
    accept(&mut catalog, 21, 30, "b@example.com", Role::Viewer);
    assert_eq!(catalog.member_count(id(1)), 1, "another invitation");
    accept(&mut catalog, 20, 30, "a@example.com", Role::Viewer);
    assert_eq!(catalog.member_count(id(1)), 1, "the address has an account");
    accept(&mut catalog, 20, 30, "b@example.com", Role::Viewer);
    accept(&mut catalog, 20, 31, "c@example.com", Role::Viewer);
    let roles: Vec<_> = catalog.members_of(id(1)).map(|it| (it.id, it.role)).collect();
    assert_eq!(roles, [(id(2), Role::Owner), (id(30), Role::Viewer)]);
    check_indexes(&catalog);
    catalog.apply(&Command::MemberRemoved { user_id: id(30) });
    assert!(catalog.user_by_email("b@example.com").is_none());
    assert_eq!(catalog.holdings(id(1)), before);
    check_indexes(&catalog);
}

#[test]
fn ended_invitations_are_removed_with_the_next_one() {
    let mut catalog = with_bucket();
    invite(&mut catalog, invitation(20, "b@example.com", Role::Editor));
    let mut late = invitation(21, "c@example.com", Role::Editor);
    late.created_at_ns = 1_000;
    invite(&mut catalog, late);
    assert!(catalog.invitation_by_hash(&Bytes([20; 32])).is_none());
    let (_, found) = catalog.invitation_by_hash(&Bytes([21; 32])).unwrap();
    assert_eq!(&*found.email, "c@example.com");
    catalog.apply(&Command::InvitationDeleted {
        organization_id: id(1),
        invitation_id: id(21),
    });
    check_indexes(&catalog);
    assert!(catalog.invitation_by_hash.is_empty());
}

#[test]
fn a_newer_link_and_a_new_password_end_a_link() {
    let mut catalog = with_bucket();
    let hash = |byte| Bytes([byte; 32]);
    for byte in [7, 8] {
        catalog.apply(&Command::ResetCreated {
            user_id: id(2),
            reset: PasswordReset {
                hash: hash(byte),
                expires_at_ns: 9,
            },
        });
        check_indexes(&catalog);
    }
    assert!(catalog.user_by_reset(&hash(7)).is_none());
    let session = UserSession::new(id(40), 4, 0, None, None);
    for number in [1, 2] {
        let session = UserSession::new(id(40 + number), number, 0, None, None);
        catalog.apply(&Command::SessionBegun {
            user_id: id(2),
            session,
        });
    }
    assert_eq!(catalog.user_by_reset(&hash(8)).unwrap().sessions.len(), 2);
    catalog.apply(&Command::PasswordChanged {
        user_id: id(2),
        password: password(3),
        session: Some(session.clone()),
    });
    check_indexes(&catalog);
    let user = catalog.user(id(2)).unwrap();
    assert_eq!((user.reset, &user.sessions), (None, &vec![session]));
}

#[test]
fn the_last_use_of_a_session_is_saved_with_the_user() {
    let mut catalog = with_bucket();
    catalog.apply(&Command::SessionBegun {
        user_id: id(2),
        session: UserSession::new(id(40), 4, 0, None, None),
    });
    let saved = catalog.freeze();
    let used = |catalog: &Catalog| catalog.user(id(2)).unwrap().sessions[0].last_used_at_ns();
    assert!(catalog.user(id(2)).unwrap().sessions[0].touch(50));
    assert_eq!(used(&catalog), 50 * MINUTE_NS, "ahead of the log");
    assert_eq!(catalog.freeze().changes_since(&saved).len(), 0);
    catalog.apply(&Command::SessionsTouched {
        touches: vec![(id(2), 4, 50), (id(2), 4, 40), (id(2), 5, 60), (id(9), 4, 70)],
    });
    assert_eq!(used(&catalog), 50 * MINUTE_NS);
    assert_eq!(catalog.freeze().changes_since(&saved).len(), 1);
}
