//! Ids for the placeholders of routes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::scene;

/// Ids for the placeholders of a route.
#[derive(Clone)]
pub struct Ids {
    pub bucket: String,
    pub source: String,
    pub key: String,
    pub organization_key: String,
    /// A rule with an evaluation block.
    pub rule: String,
    /// A rule without one.
    pub plain_rule: String,
    /// A silence of the bucket.
    pub silence: String,
    /// An annotation of the bucket.
    pub annotation: String,
    /// A board of the organization.
    pub board: String,
    /// A link to the board.
    pub share: String,
    pub webhook: String,
    /// A delivery of the webhook.
    pub delivery: String,
    pub organization: String,
    /// A member who has not signed up the organization.
    pub member: String,
    pub invitation: String,
    /// A session of the user who has signed up.
    pub session: String,
}

impl Ids {
    pub fn all(id: &str) -> Self {
        let id = id.to_owned();
        Self {
            bucket: id.clone(),
            source: id.clone(),
            key: id.clone(),
            organization_key: id.clone(),
            rule: id.clone(),
            plain_rule: id.clone(),
            silence: id.clone(),
            annotation: id.clone(),
            board: id.clone(),
            share: id.clone(),
            webhook: id.clone(),
            delivery: id.clone(),
            organization: id.clone(),
            member: id.clone(),
            invitation: id.clone(),
            session: id,
        }
    }

    /// All ids.
    pub fn each(&self) -> [&str; 16] {
        let Self {
            bucket,
            source,
            key,
            organization_key,
            rule,
            plain_rule,
            silence,
            annotation,
            board,
            share,
            webhook,
            delivery,
            organization,
            member,
            invitation,
            session,
        } = self;
        [
            bucket,
            source,
            key,
            organization_key,
            rule,
            plain_rule,
            silence,
            annotation,
            board,
            share,
            webhook,
            delivery,
            organization,
            member,
            invitation,
            session,
        ]
        .map(String::as_str)
    }

    pub fn fill(&self, template: &str) -> String {
        static UNIQUE: AtomicU32 = AtomicU32::new(0);
        template
            .replace("{bucket}", &self.bucket)
            .replace("{source}", &self.source)
            .replace("{key}", &self.key)
            .replace("{organizationKey}", &self.organization_key)
            .replace("{rule}", &self.rule)
            .replace("{plainRule}", &self.plain_rule)
            .replace("{silence}", &self.silence)
            .replace("{annotation}", &self.annotation)
            .replace("{board}", &self.board)
            .replace("{share}", &self.share)
            .replace("{soon}", &scene::in_days(30))
            .replace("{webhook}", &self.webhook)
            .replace("{delivery}", &self.delivery)
            .replace("{organization}", &self.organization)
            .replace("{member}", &self.member)
            .replace("{invitation}", &self.invitation)
            .replace("{session}", &self.session)
            .replace(
                "{unique}",
                &format!("unique-{}", UNIQUE.fetch_add(1, Ordering::Relaxed)),
            )
    }
}
