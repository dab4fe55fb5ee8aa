//! What the audit says of a command: its verb, its target, and what it changes.

use serde_json::{Value, json};

use super::shown::{self, Shown, cut};
use crate::catalog::{
    AuditVerb, Board, Catalog, Command, Rule, RuleSettings, Secret, Target, TargetKind, User, WebhookFormat,
};
use crate::ids::ObjectId;
use crate::limits::{AUDIT_VALUE_BYTES_MAX, NAME_CHARS_MAX};
use crate::timestamp::Timestamp;

/// What stands in place of a secret that was changed.
const HIDDEN: &str = "hidden";

/// An entry of the audit without who and when.
pub struct Described {
    pub verb: AuditVerb,
    pub target: Target,
    /// By member, `{old, new}`.
    pub changes: Shown,
}

/// What the audit says of a command that is not applied yet; `None` for a command that is not audited, or that changes
/// nothing.
pub fn described(catalog: &Catalog, command: &Command) -> Option<Described> {
    match command {
        Command::SignedUp { organization, .. } => {
            let target = target(TargetKind::Organization, organization.id, &organization.name);
            let shown = shown::organization(&organization.name, organization.plan.name());
            Some(created(target, shown))
        }
        Command::OrganizationRenamed {
            organization_id,
            name,
            ..
        } => {
            let known = catalog.organization(*organization_id)?;
            let plan = known.plan.name();
            let target = target(TargetKind::Organization, known.id, &known.name);
            updated(target, shown::organization(&known.name, plan), shown::organization(name, plan))
        }
        Command::PlanChanged {
            organization_id,
            plan,
            ..
        } => {
            let known = catalog.organization(*organization_id)?;
            let name = &known.name;
            let target = target(TargetKind::Organization, known.id, name);
            let (old, new) = (known.plan.name(), plan.name());
            updated(target, shown::organization(name, old), shown::organization(name, new))
        }
        Command::InvitationCreated { .. }
        | Command::InvitationDeleted { .. }
        | Command::InvitationAccepted { .. }
        | Command::MemberRoleChanged { .. }
        | Command::MemberRemoved { .. }
        | Command::PasswordChanged { .. }
        | Command::ResetCreated { .. } => of_people(catalog, command),
        Command::KeyCreated { key } => {
            Some(created(target(TargetKind::Key, key.id, &key.name), shown::key(key)))
        }
        Command::KeyRotated {
            key_id,
            former_until_ns,
            ..
        } => {
            let key = catalog.key(*key_id)?;
            let until = former_until_ns.map(Timestamp);
            Some(Described {
                verb: AuditVerb::Rotated,
                target: target(TargetKind::Key, key.id, &key.name),
                changes: one("formerValueUntil", json!(null), json!(until)),
            })
        }
        Command::KeyDeleted { key_id } => {
            let key = catalog.key(*key_id)?;
            Some(deleted(target(TargetKind::Key, key.id, &key.name), shown::key(key)))
        }
        Command::BucketCreated { .. }
        | Command::BucketUpdated { .. }
        | Command::BucketDeleted { .. }
        | Command::SourceCreated { .. }
        | Command::SourceUpdated { .. }
        | Command::SourceDeleted { .. }
        | Command::AnnotationCreated { .. }
        | Command::AnnotationUpdated { .. }
        | Command::AnnotationDeleted { .. } => of_buckets(catalog, command),
        Command::RuleCreated { .. }
        | Command::RuleUpdated { .. }
        | Command::RuleAcknowledged { .. }
        | Command::RuleDeleted { .. }
        | Command::WebhookCreated { .. }
        | Command::WebhookUpdated { .. }
        | Command::WebhookDeleted { .. }
        | Command::SilenceCreated { .. }
        | Command::SilenceDeleted { .. } => of_rules(catalog, command),
        Command::BoardCreated { .. }
        | Command::BoardUpdated { .. }
        | Command::BoardDeleted { .. }
        | Command::BoardShared { .. }
        | Command::BoardUnshared { .. } => of_boards(catalog, command),
        // What the server does by itself, what is counted, sessions, points, verdicts and deliveries.
        Command::ServerSecretSet { .. }
        | Command::SessionBegun { .. }
        | Command::SessionsTouched { .. }
        | Command::SessionEnded { .. }
        | Command::CallsCounted { .. }
        | Command::KeyCallsCounted { .. }
        | Command::KeysTouched { .. }
        | Command::BucketOrdinalsBegun { .. }
        | Command::SchemaExtended { .. }
        | Command::MetricTyped { .. }
        | Command::FreshnessChanged { .. }
        | Command::VerdictRecorded { .. }
        | Command::RuleResolved { .. }
        | Command::RuleOverdue { .. }
        | Command::DeliveriesQueued { .. }
        | Command::AttemptMade { .. }
        | Command::DeliveriesCounted { .. }
        // Described already.
        | Command::Audited { .. }
        | Command::PointsDeleted { .. } => None,
    }
}

fn of_people(catalog: &Catalog, command: &Command) -> Option<Described> {
    let member = |user: &User| target(TargetKind::Member, user.id, &user.name);
    match command {
        Command::InvitationCreated { invitation, .. } => {
            let target = target(TargetKind::Invitation, invitation.id, &invitation.email);
            Some(created(target, shown::invitation(invitation)))
        }
        Command::InvitationDeleted {
            organization_id,
            invitation_id,
        } => {
            let organization = catalog.organization(*organization_id)?;
            let mut all = organization.invitations.iter();
            let known = all.find(|known| known.id == *invitation_id)?;
            let target = target(TargetKind::Invitation, known.id, &known.email);
            Some(deleted(target, shown::invitation(known)))
        }
        Command::InvitationAccepted { user, .. } => Some(created(member(user), shown::member(user))),
        Command::MemberRoleChanged { user_id, role } => {
            let known = catalog.user(*user_id)?;
            let mut changed = User::clone(known);
            changed.role = *role;
            updated(member(known), shown::member(known), shown::member(&changed))
        }
        Command::MemberRemoved { user_id } => {
            let known = catalog.user(*user_id)?;
            Some(deleted(member(known), shown::member(known)))
        }
        Command::PasswordChanged { user_id, .. } => Some(Described {
            verb: AuditVerb::Updated,
            target: member(catalog.user(*user_id)?),
            changes: hidden("password"),
        }),
        Command::ResetCreated { user_id, reset } => {
            let until = json!({"expiresAt": Timestamp(reset.expires_at_ns)});
            Some(Described {
                verb: AuditVerb::Updated,
                target: member(catalog.user(*user_id)?),
                changes: one("reset", json!(null), until),
            })
        }
        _ => None,
    }
}

fn of_buckets(catalog: &Catalog, command: &Command) -> Option<Described> {
    match command {
        Command::BucketCreated { bucket } => {
            let shown = shown::bucket(&bucket.name, bucket.description.as_deref(), bucket.retention_days);
            Some(created(
                target(TargetKind::Bucket, bucket.id, &bucket.name),
                shown,
            ))
        }
        Command::BucketUpdated {
            bucket_id,
            name,
            description,
            retention_days,
            ..
        } => {
            let known = catalog.bucket(*bucket_id)?;
            let before = shown::bucket(&known.name, known.description.as_deref(), known.retention_days);
            let after = shown::bucket(name, description.as_deref(), *retention_days);
            updated(target(TargetKind::Bucket, known.id, &known.name), before, after)
        }
        Command::BucketDeleted { bucket_id } => {
            let known = catalog.bucket(*bucket_id)?;
            let shown = shown::bucket(&known.name, known.description.as_deref(), known.retention_days);
            Some(deleted(target(TargetKind::Bucket, known.id, &known.name), shown))
        }
        Command::SourceCreated { source } => {
            let target = target(TargetKind::Source, source.id, &source.settings.name);
            Some(created(target, shown::source(source.bucket_id, &source.settings)))
        }
        Command::SourceUpdated {
            source_id, settings, ..
        } => {
            let known = catalog.source(*source_id)?;
            let mut settings = settings.clone();
            let merged = known.schema.merged(&settings.fields);
            let schema = merged.as_ref().unwrap_or(&known.schema);
            settings.fields.clone_from(&schema.fields);
            let target = target(TargetKind::Source, known.id, &known.name);
            let before = shown::source(known.bucket_id, &shown::settings_of(known));
            updated(target, before, shown::source(known.bucket_id, &settings))
        }
        Command::SourceDeleted { source_id } => {
            let known = catalog.source(*source_id)?;
            let target = target(TargetKind::Source, known.id, &known.name);
            Some(deleted(
                target,
                shown::source(known.bucket_id, &shown::settings_of(known)),
            ))
        }
        Command::AnnotationCreated { annotation } => {
            let target = target(TargetKind::Annotation, annotation.id, &annotation.settings.text);
            Some(created(
                target,
                shown::annotation(annotation, &annotation.settings),
            ))
        }
        Command::AnnotationUpdated {
            annotation_id,
            settings,
            ..
        } => {
            let known = catalog.annotation(*annotation_id)?;
            let target = target(TargetKind::Annotation, known.id, &known.settings.text);
            let before = shown::annotation(known, &known.settings);
            updated(target, before, shown::annotation(known, settings))
        }
        Command::AnnotationDeleted { annotation_id } => {
            let known = catalog.annotation(*annotation_id)?;
            let target = target(TargetKind::Annotation, known.id, &known.settings.text);
            Some(deleted(target, shown::annotation(known, &known.settings)))
        }
        _ => None,
    }
}

fn of_rules(catalog: &Catalog, command: &Command) -> Option<Described> {
    let shown_rule =
        |rule: &Rule, settings: &RuleSettings| shown::rule(rule.bucket_id, rule.source_id, settings);
    let rule = |rule: &Rule| target(TargetKind::Rule, rule.id, &rule.settings.name);
    match command {
        Command::RuleCreated { rule } => {
            let source = catalog.source(rule.source_id)?;
            let target = target(TargetKind::Rule, rule.id, &rule.settings.name);
            Some(created(
                target,
                shown::rule(source.bucket_id, source.id, &rule.settings),
            ))
        }
        Command::RuleUpdated {
            rule_id, settings, ..
        } => {
            let known = catalog.rule(*rule_id)?;
            let before = shown_rule(known, &known.settings);
            updated(rule(known), before, shown_rule(known, settings))
        }
        Command::RuleAcknowledged {
            rule_id,
            acknowledgement,
        } => Some(Described {
            verb: AuditVerb::Acknowledged,
            target: rule(catalog.rule(*rule_id)?),
            changes: one("note", json!(null), json!(acknowledgement.note)),
        }),
        Command::RuleDeleted { rule_id } => {
            let known = catalog.rule(*rule_id)?;
            Some(deleted(rule(known), shown_rule(known, &known.settings)))
        }
        Command::WebhookCreated { webhook } => {
            let target = target(TargetKind::Webhook, webhook.id, &webhook.settings.url);
            Some(created(target, shown::webhook(&webhook.settings)))
        }
        Command::WebhookUpdated {
            webhook_id, settings, ..
        } => {
            let known = catalog.webhook(*webhook_id)?;
            let (old, new) = (shown::webhook(&known.settings), shown::webhook(settings));
            let mut changes = between(old, new);
            if known.settings.secret != settings.secret {
                changes.append(&mut hidden("secret"));
            }
            if routing_key(&known.settings.format) != routing_key(&settings.format) {
                changes.append(&mut hidden("routingKey"));
            }
            let target = target(TargetKind::Webhook, known.id, &known.settings.url);
            some_change(target, changes)
        }
        Command::WebhookDeleted { webhook_id } => {
            let known = catalog.webhook(*webhook_id)?;
            let target = target(TargetKind::Webhook, known.id, &known.settings.url);
            Some(deleted(target, shown::webhook(&known.settings)))
        }
        Command::SilenceCreated { silence } => {
            let target = target(TargetKind::Mute, silence.id, &silence.reason);
            Some(created(target, shown::mute(silence)))
        }
        Command::SilenceDeleted { silence_id } => {
            let known = catalog.silence(*silence_id)?;
            let target = target(TargetKind::Mute, known.id, &known.reason);
            Some(deleted(target, shown::mute(known)))
        }
        _ => None,
    }
}

fn of_boards(catalog: &Catalog, command: &Command) -> Option<Described> {
    let board = |board: &Board| target(TargetKind::Board, board.id, &board.settings.name);
    match command {
        Command::BoardCreated { board: new } => Some(created(board(new), shown::board(&new.settings))),
        Command::BoardUpdated {
            board_id, settings, ..
        } => {
            let known = catalog.board(*board_id)?;
            updated(
                board(known),
                shown::board(&known.settings),
                shown::board(settings),
            )
        }
        Command::BoardDeleted { board_id } => {
            let known = catalog.board(*board_id)?;
            Some(deleted(board(known), shown::board(&known.settings)))
        }
        Command::BoardShared { board_id, share } => {
            let link = json!({"_id": share.id, "expiresAt": Timestamp(share.expires_at_ns)});
            some_change(board(catalog.board(*board_id)?), one("share", json!(null), link))
        }
        Command::BoardUnshared { board_id, share_id } => {
            let known = catalog.board(*board_id)?;
            let share = known.shares.iter().find(|share| share.id == *share_id)?;
            let link = json!({"_id": share.id, "expiresAt": Timestamp(share.expires_at_ns)});
            some_change(board(known), one("share", link, json!(null)))
        }
        _ => None,
    }
}

fn routing_key(format: &WebhookFormat) -> Option<&Secret> {
    match format {
        WebhookFormat::PagerDuty { routing_key } => Some(routing_key),
        _ => None,
    }
}

/// A target with its name, or the beginning of the text that stands in its place.
fn target(kind: TargetKind, id: ObjectId, name: &str) -> Target {
    let name = match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    };
    Target { kind, id, name }
}

fn created(target: Target, after: Shown) -> Described {
    Described {
        verb: AuditVerb::Created,
        target,
        changes: between(Shown::new(), after),
    }
}

fn updated(target: Target, before: Shown, after: Shown) -> Option<Described> {
    some_change(target, between(before, after))
}

fn some_change(target: Target, changes: Shown) -> Option<Described> {
    (!changes.is_empty()).then_some(Described {
        verb: AuditVerb::Updated,
        target,
        changes,
    })
}

fn deleted(target: Target, before: Shown) -> Described {
    Described {
        verb: AuditVerb::Deleted,
        target,
        changes: between(before, Shown::new()),
    }
}

/// The members that differ, each as `{old, new}`. What is missing is null. Of two objects, only what differs in them.
fn between(mut before: Shown, after: Shown) -> Shown {
    let mut changes = Shown::new();
    let mut differs = |name: String, old: Value, new: Value| {
        if old != new {
            let (old, new) = without_equals(old, new);
            let [old, new] = [old, new].map(|value| cut(value, AUDIT_VALUE_BYTES_MAX));
            changes.insert(name, json!({"old": old, "new": new}));
        }
    };
    for (name, new) in after {
        let old = before.remove(&name).unwrap_or_default();
        differs(name, old, new);
    }
    for (name, old) in before {
        differs(name, old, json!(null));
    }
    changes
}

fn without_equals(old: Value, new: Value) -> (Value, Value) {
    match (old, new) {
        (Value::Object(mut old), Value::Object(mut new)) => {
            old.retain(|name, value| match new.get(name) {
                Some(same) if same == value => {
                    new.remove(name);
                    false
                }
                _ => true,
            });
            (Value::Object(old), Value::Object(new))
        }
        other => other,
    }
}

fn one(name: &str, old: Value, new: Value) -> Shown {
    between(
        Shown::from_iter([(name.to_owned(), old)]),
        Shown::from_iter([(name.to_owned(), new)]),
    )
}

/// A secret that was replaced.
fn hidden(name: &str) -> Shown {
    Shown::from_iter([(name.to_owned(), json!({"old": HIDDEN, "new": HIDDEN}))])
}
