//! Members, invitations and sessions of an account, for tests.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::log_in;
use crate::support::client::Answer;
use crate::support::given::{Account, PASSWORD, text};

/// An open invitation.
pub struct Invitation {
    pub id: String,
    pub email: String,
    pub token: String,
}

/// A member who has accepted an invitation.
pub struct Member {
    pub id: String,
    pub email: String,
    /// The bearer token.
    pub token: String,
}

/// An address that no other test uses.
pub fn new_email() -> String {
    static PEOPLE: AtomicU32 = AtomicU32::new(0);
    format!("person{}@example.org", PEOPLE.fetch_add(1, Ordering::Relaxed))
}

/// Sends a request with a bearer token.
pub fn send(account: &Account, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let request = account.client.request(method, path).bearer(token);
    match body {
        Value::Null => request.send(),
        body => request.json(body).send(),
    }
}

impl Account {
    pub fn as_owner(&self, method: &str, path: &str, body: &Value) -> Answer {
        send(self, &self.token, method, path, body)
    }

    #[track_caller]
    pub fn invitation(&self, role: &str) -> Invitation {
        let email = new_email();
        let body = json!({"email": email, "role": role});
        let created = self.as_owner("POST", "/api/organization/invitations", &body);
        let created = created.expect(201, "chapter 14, no. 53: an owner invites");
        Invitation {
            id: text(&created, "/invitation/_id"),
            email,
            token: text(&created, "/invitation/token"),
        }
    }

    pub fn accept(&self, token: &str) -> Answer {
        let body = json!({"token": token, "name": "Grace", "password": PASSWORD});
        self.client
            .post("/api/auth/invitations/accept")
            .json(&body)
            .send()
    }

    #[track_caller]
    pub fn member(&self, role: &str) -> Member {
        let Invitation { email, token, .. } = self.invitation(role);
        let joined = self.accept(&token);
        let joined = joined.expect(201, "chapter 14, no. 51: an invitation is accepted");
        Member {
            id: text(&joined, "/user/_id"),
            email,
            token: text(&joined, "/token"),
        }
    }

    /// The id of a new session of the account's first user.
    #[track_caller]
    pub fn session(&self) -> String {
        let token = log_in(self);
        let sessions = send(self, &token, "GET", "/api/auth/sessions?limit=1000", &Value::Null);
        let sessions = sessions.expect(200, "chapter 14, no. 59");
        let sessions = sessions["sessions"].as_array().unwrap();
        let own = sessions.iter().find(|session| session["current"] == true);
        text(own.unwrap(), "/_id")
    }
}
