//! HTTP resources, one file each.

pub mod accounts;
pub mod alert_history;
pub mod alert_views;
pub mod alerts;
pub mod analytics;
pub mod annotations;
pub mod buckets;
pub mod changes;
pub mod cluster;
pub mod dashboard;
pub mod data;
pub mod evaluation_body;
pub mod evaluations;
pub mod health;
pub mod keys;
pub mod metrics;
pub mod operator;
pub mod organization;
pub mod query;
pub mod query_body;
mod query_members;
pub mod silences;
pub mod sources;
mod value_filters;
pub mod views;
pub mod webhook_deliveries;
pub mod webhooks;
