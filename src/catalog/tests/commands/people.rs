//! Random commands about members, invitations and sessions.

use super::super::super::Command;
use super::super::super::{Bytes, Invitation, PasswordReset, Role, User, UserSession};
use super::super::{id, password};
use super::CommandGenerator;
use crate::clock::DAY_NS;

impl CommandGenerator {
    pub(super) fn attempt_at_people(&mut self) -> Option<Command> {
        self.made += 1;
        let (new, at_ns) = (id(self.made), self.made as i64 * DAY_NS);
        let mut hash = [2; 32];
        hash[..8].copy_from_slice(&self.made.to_le_bytes());
        let (number, minute) = (self.random.below(20) as u64, self.random.below(1_000) as u32);
        let (role, user_id) = (self.random.pick(&Role::ALL)?, self.random.pick(&self.users)?);
        Some(match self.random.below(12) {
            0..3 => {
                let organization_id = self.random.pick(&self.organizations)?;
                let invitation = Invitation {
                    id: new,
                    email: format!("i{}", self.made).into(),
                    role,
                    hash: Bytes(hash),
                    created_at_ns: at_ns,
                    created_by: user_id,
                    expires_at_ns: at_ns + self.random.below(2_000) as i64 * DAY_NS,
                };
                self.invitations.push((organization_id, invitation.clone()));
                Command::InvitationCreated {
                    organization_id,
                    invitation,
                }
            }
            kind @ 3..6 => {
                let index = self.random.below(self.invitations.len().max(1));
                let (organization_id, invitation) = self.invitations.get(index)?.clone();
                let invitation_id = invitation.id;
                if kind == 3 {
                    return Some(Command::InvitationDeleted {
                        organization_id,
                        invitation_id,
                    });
                }
                self.users.push(new);
                let user = User {
                    role: invitation.role,
                    sessions: vec![UserSession::new(new, number, at_ns, None, None)],
                    created_by: Some(invitation.created_by),
                    ..User::new(new, organization_id, invitation.email, "n", password(3), at_ns)
                };
                Command::InvitationAccepted { invitation_id, user }
            }
            6 => Command::MemberRoleChanged { user_id, role },
            7 => Command::MemberRemoved { user_id },
            8 => Command::ResetCreated {
                user_id,
                reset: PasswordReset {
                    hash: Bytes(hash),
                    expires_at_ns: at_ns,
                },
            },
            9 => Command::SessionsTouched {
                touches: vec![(user_id, number, minute)],
            },
            _ => Command::SessionBegun {
                user_id,
                session: UserSession::new(new, number, at_ns, Some("::1".into()), Some("curl".into())),
            },
        })
    }
}
