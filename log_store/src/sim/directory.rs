//! The directory in memory.

use std::collections::BTreeMap;

use super::SimStore;
use crate::directory::{CredentialHash, Directory, Place, check_names};
use crate::{Shard, StoreError};

#[derive(Default)]
pub(super) struct Names {
    emails: BTreeMap<String, Place>,
    credentials: BTreeMap<CredentialHash, Shard>,
}

impl Directory for SimStore {
    fn take(&mut self, email: &str, shard: Shard, organization: &str) -> Result<Place, StoreError> {
        check_names([email, organization])?;
        let names = &mut self.state.lock().names;
        let place = names.emails.entry(email.to_owned()).or_insert_with(|| Place {
            shard,
            organization: organization.to_owned(),
        });
        Ok(place.clone())
    }

    fn find(&mut self, email: &str) -> Result<Option<Place>, StoreError> {
        Ok(self.state.lock().names.emails.get(email).cloned())
    }

    fn give_up(&mut self, email: &str, shard: Shard) -> Result<bool, StoreError> {
        let emails = &mut self.state.lock().names.emails;
        let is_its = emails.get(email).is_some_and(|place| place.shard == shard);
        Ok(is_its && emails.remove(email).is_some())
    }

    fn add_credentials(
        &mut self,
        credentials: &[(CredentialHash, Shard)],
    ) -> Result<Vec<CredentialHash>, StoreError> {
        let names = &mut self.state.lock().names;
        let mut add = |(hash, shard): &(CredentialHash, Shard)| {
            let of = names.credentials.entry(*hash).or_insert(*shard);
            (of != shard).then_some(*hash)
        };
        Ok(credentials.iter().filter_map(&mut add).collect())
    }

    fn find_credential(&mut self, hash: &CredentialHash) -> Result<Option<Shard>, StoreError> {
        Ok(self.state.lock().names.credentials.get(hash).copied())
    }
}
