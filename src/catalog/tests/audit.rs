//! The audit: entries come with their changes.

use super::super::*;
use super::fixture::{file, one_of_each};
use super::objects::assert_equal;
use super::{id, password};
use crate::ids::ObjectId;

/// An entry about a bucket.
pub fn audit(number: u64, organization_id: ObjectId) -> Audit {
    Audit {
        id: id(number),
        organization_id,
        at_ns: number as i64,
        entry: AuditEntry {
            verb: AuditVerb::Updated,
            actor: Actor {
                kind: ActorKind::User,
                id: Some(id(2)),
                name: "Ada".into(),
            },
            target: Target {
                kind: TargetKind::Bucket,
                id: id(3),
                name: "tides".into(),
            },
            changes: r#"{"retentionDays":{"old":30,"new":90}}"#.into(),
            address: Some("203.0.113.9".into()),
        },
    }
}

fn entries(catalog: &Catalog, organization_id: ObjectId) -> Vec<(EntryKey, AuditEntry)> {
    let entries = catalog.ledger().of(Stream::Audit, organization_id);
    let decoded =
        |(key, entry): (EntryKey, TailEntry)| (key, AuditEntry::decode(&entry.payload.to_vec()).unwrap());
    entries.into_iter().map(decoded).collect()
}

#[test]
fn an_audited_command_is_applied_with_its_entry() {
    let (mut plain, mut audited) = (one_of_each(), one_of_each());
    let command = Command::OrganizationRenamed {
        organization_id: id(1),
        name: "renamed".into(),
        at_ns: 5,
    };
    let before = audited.revisions(id(1)).unwrap();
    plain.apply(&command);
    let audit = audit(900, id(1));
    let command = Command::Audited {
        command: Box::new(command),
        audit: audit.clone(),
    };
    audited.apply(&Command::decode(&command.encode().unwrap()).unwrap());
    assert_equal(&audited, &plain);
    assert_eq!(plain.revisions(id(1)), audited.revisions(id(1)));
    assert_ne!(audited.revisions(id(1)).unwrap(), before);
    let [(key, entry)] = entries(&audited, id(1)).try_into().unwrap();
    assert_eq!((key.at_ns, key.id), (audit.at_ns, audit.id));
    assert_eq!(entry, audit.entry);
    assert!(entries(&audited, id(2)).is_empty());
}

#[test]
fn a_join_that_is_refused_leaves_no_entry() {
    let mut catalog = one_of_each();
    let user = User {
        role: Role::Viewer,
        sessions: vec![UserSession::new(id(70), 1, 1, None, None)],
        ..User::new(id(60), id(1), "late@example.com", "Late", password(1), 1)
    };
    let command = Command::InvitationAccepted {
        invitation_id: id(99),
        user,
    };
    catalog.apply(&Command::Audited {
        command: Box::new(command),
        audit: audit(900, id(1)),
    });
    assert!(catalog.user(id(60)).is_none());
    assert!(entries(&catalog, id(1)).is_empty());
    catalog.apply(&Command::PointsDeleted {
        audit: audit(901, id(1)),
    });
    assert_eq!(entries(&catalog, id(1)).len(), 1);
}

/// A record of the log with an entry of the audit.
#[test]
fn audited_commands_are_read() {
    let expected = Command::Audited {
        command: Box::new(Command::BucketDeleted { bucket_id: id(3) }),
        audit: audit(7, id(1)),
    };
    let bytes = file("audited-1.bin", &expected.encode().unwrap());
    let Command::Audited { command, audit } = Command::decode(&bytes).unwrap() else {
        panic!("another command");
    };
    assert!(matches!(*command, Command::BucketDeleted { bucket_id } if bucket_id == id(3)));
    let Command::Audited { audit: written, .. } = expected else {
        unreachable!()
    };
    assert_eq!(audit, written);
}
