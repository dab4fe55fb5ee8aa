//! The texts of keys, and of the tokens of links: a prefix and 32 random bytes. In a cluster they name their shard.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::shard_name::{NAME_BYTES, ShardName};

/// The text of a secret. In a cluster its first bytes name the shard. 43 characters hold two bits more than the 32 bytes:
/// the last one is set if the secret names a shard.
pub fn secret_text(prefix: &str, mut random: [u8; 32], shard: Option<ShardName>) -> String {
    if let Some(name) = shard {
        random[..NAME_BYTES].copy_from_slice(&name.to_bytes());
    }
    let mut text = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random));
    if shard.is_some()
        && let Some(last) = text.pop()
    {
        // Its value is a multiple of four, and the next character of the alphabet has the value after it.
        text.push(after(last));
    }
    text
}

/// The characters that can end 43 characters of base64url without a spare bit, and those after them.
const LAST: [(char, char); 16] = [
    ('A', 'B'),
    ('E', 'F'),
    ('I', 'J'),
    ('M', 'N'),
    ('Q', 'R'),
    ('U', 'V'),
    ('Y', 'Z'),
    ('c', 'd'),
    ('g', 'h'),
    ('k', 'l'),
    ('o', 'p'),
    ('s', 't'),
    ('w', 'x'),
    ('0', '1'),
    ('4', '5'),
    ('8', '9'),
];

fn after(last: char) -> char {
    let found = LAST.iter().find(|(plain, _)| *plain == last);
    found.map_or(last, |(_, marked)| *marked)
}

/// The shard that a secret with one of these prefixes names; `None` for one that names none.
pub fn shard_named_in<const N: usize>(secret: &[u8], prefixes: [&str; N]) -> Option<ShardName> {
    let random = prefixes
        .iter()
        .find_map(|prefix| secret.strip_prefix(prefix.as_bytes()))?;
    let last = char::from(*random.last()?);
    if random.len() != SECRET_CHARS || !LAST.iter().any(|(_, marked)| *marked == last) {
        return None;
    }
    let name = URL_SAFE_NO_PAD.decode(&random[..NAME_CHARS]).ok()?;
    Some(ShardName::of_bytes(name.try_into().ok()?))
}

/// Characters of a shard's name in a secret.
const NAME_CHARS: usize = NAME_BYTES / 3 * 4;

/// Characters of a secret behind its prefix.
const SECRET_CHARS: usize = 43;

#[cfg(test)]
mod tests {
    use log_store::Shard;

    use super::*;
    use crate::catalog::KeyType;
    use crate::service::shard_name::ClusterTag;

    fn shard_named(key: &[u8]) -> Option<ShardName> {
        shard_named_in(key, KeyType::ALL.map(KeyType::prefix))
    }

    #[test]
    fn a_key_of_a_cluster_names_its_shard_and_others_name_none() {
        for kind in KeyType::ALL {
            for (shard, byte) in [(0, 0), (1, 255), (63, 7), (4_095, 130), (u16::MAX, 64)] {
                let random = [byte; 32];
                let name = ShardName {
                    cluster: ClusterTag::of("a cluster"),
                    shard: Shard(shard),
                };
                let named = secret_text(kind.prefix(), random, Some(name));
                assert_eq!(shard_named(named.as_bytes()), Some(name), "{named}");
                assert_eq!(name.within(name.cluster), Some(Shard(shard)));
                assert_eq!(name.within(ClusterTag::of("another")), None);
                assert_eq!(named.len(), kind.prefix().len() + SECRET_CHARS);
                let plain = secret_text(kind.prefix(), random, None);
                assert_eq!(shard_named(plain.as_bytes()), None, "{plain}");
            }
        }
        for wrong in ["", "svc_a_", "svc_a_B", "svc_x_AAAB", "svc_a_====B"] {
            assert_eq!(shard_named(wrong.as_bytes()), None);
        }
    }
}
