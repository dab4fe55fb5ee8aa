//! Sets up what a user would create: an account, keys, a bucket, and a data source per sensor and series.

use std::slice::from_ref;

use evaluator::Credential;
use serde_json::{Map, Value, json};

use crate::api::{Api, ApiError};
use crate::plant::{Field, Sensor};
use crate::series::Series;

/// Login of the demo's user.
pub const EMAIL: &str = "demo@example.com";

/// The created objects.
pub struct Site {
    /// Client with the owner's session.
    pub owner: Api,
    /// API key for writing points.
    pub write_key: String,
    /// API key for evaluators.
    pub integration_key: String,
    /// Id of the bucket.
    pub bucket: String,
    /// Ids of the sources by name.
    sources: Vec<(&'static str, String)>,
}

impl Site {
    /// Signs up at the service at `base` and creates all objects.
    ///
    /// # Errors
    /// The service refuses a step.
    pub async fn set_up(base: &str, password: &str, series: &[Series]) -> Result<Self, ApiError> {
        let anonymous = Api::new(base, Credential::Nothing)?;
        let account = json!({
            "email": EMAIL, "password": password, "name": "Demo", "organizationName": "Demo plant",
        });
        let token = anonymous.create("/api/auth/signup", &account, "/token").await?;
        let owner = Api::new(base, Credential::Bearer(&token))?;
        let bucket = json!({
            "name": "plant", "description": "Simulated sensors and recorded series", "retentionDays": 90,
        });
        let bucket = owner.create("/api/buckets", &bucket, "/bucket/_id").await?;
        let mut site = Self {
            write_key: key(&owner, &format!("/api/buckets/{bucket}/keys"), "feed", "write").await?,
            integration_key: key(&owner, "/api/organization/keys", "evaluator", "integration").await?,
            owner,
            bucket,
            sources: Vec::new(),
        };
        for sensor in Sensor::ALL {
            site.add_source(sensor.name(), "sensor", sensor.description(), sensor.fields())
                .await?;
        }
        for Series { about, .. } in series {
            site.add_source(about.name, about.kind, about.description, from_ref(&about.field))
                .await?;
        }
        Ok(site)
    }

    async fn add_source(
        &mut self,
        name: &'static str,
        kind: &str,
        description: &str,
        fields: &[Field],
    ) -> Result<(), ApiError> {
        let schema = fields.iter().map(|field| (field.name.to_owned(), json!(field)));
        let schema: Map<String, Value> = schema.collect();
        let body = json!({"name": name, "type": kind, "description": description, "schema": schema});
        let path = format!("/api/buckets/{}/sources", self.bucket);
        let id = self.owner.create(&path, &body, "/dataSource/_id").await?;
        self.sources.push((name, id));
        Ok(())
    }

    /// The id of a source; empty if the name is unknown.
    pub fn source(&self, name: &str) -> &str {
        let found = self.sources.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, id)| id)
    }
}

async fn key(owner: &Api, path: &str, name: &str, kind: &str) -> Result<String, ApiError> {
    let body = json!({"name": name, "type": kind});
    owner.create(path, &body, "/apiKey/key").await
}
