//! Sets up what a user would create: an account, keys, a bucket, and a data source per sensor and series.

use serde_json::{Map, Value, json};

use super::api::{Api, ApiError, text};
use super::plant::Sensor;
use super::series;
use crate::evaluator::Credential;

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
    pub async fn set_up(base: &str, password: &str) -> Result<Self, ApiError> {
        let stranger = Api::new(base, Credential::Nothing)?;
        let account = json!({
            "email": EMAIL, "password": password, "name": "Demo", "organizationName": "Demo plant",
        });
        let account = stranger.post("/api/auth/signup", account.to_string()).await?;
        let owner = Api::new(base, Credential::Bearer(&text(&account, "/token")?))?;
        let bucket = json!({
            "name": "plant", "description": "Simulated sensors and recorded series", "retentionDays": 90,
        });
        let bucket = owner.post("/api/buckets", bucket.to_string()).await?;
        let bucket = text(&bucket, "/bucket/_id")?;
        let mut site = Self {
            write_key: key(&owner, &format!("/api/buckets/{bucket}/keys"), "feed", "write").await?,
            integration_key: key(&owner, "/api/organization/keys", "evaluator", "integration").await?,
            owner,
            bucket,
            sources: Vec::new(),
        };
        for sensor in Sensor::ALL {
            let schema = sensor.fields().iter().map(|field| {
                let mut shown = json!({"type": field.kind, "description": field.description});
                if let Some(unit) = field.unit {
                    shown["unit"] = unit.into();
                }
                (field.name.to_owned(), shown)
            });
            site.add_source(sensor.name(), "sensor", sensor.description(), schema.collect())
                .await?;
        }
        for series in &series::ALL {
            let schema = [(
                series.field.to_owned(),
                json!({"type": "number", "unit": series.unit}),
            )];
            site.add_source(
                series.name,
                series.kind,
                series.description,
                schema.into_iter().collect(),
            )
            .await?;
        }
        Ok(site)
    }

    async fn add_source(
        &mut self,
        name: &'static str,
        kind: &str,
        description: &str,
        schema: Map<String, Value>,
    ) -> Result<(), ApiError> {
        let body = json!({"name": name, "type": kind, "description": description, "schema": schema});
        let path = format!("/api/buckets/{}/sources", self.bucket);
        let answer = self.owner.post(path, body.to_string()).await?;
        self.sources.push((name, text(&answer, "/dataSource/_id")?));
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
    text(&owner.post(path, body.to_string()).await?, "/apiKey/key")
}
