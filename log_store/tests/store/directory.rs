//! Which shard has an e-mail address or a key.

use log_store::{CREDENTIALS_BATCH, CredentialHash, NAME_BYTES_MAX, Place, SHARDS_MAX, Shard, ordinals};

use crate::sides::{LEASE, on_both, on_both_directories};

fn place(shard: u16, organization: &str) -> Place {
    Place {
        shard: Shard(shard),
        organization: organization.to_owned(),
    }
}

#[test]
fn an_address_is_taken_by_one_organization() {
    on_both_directories(|one, other| {
        assert_eq!(one.find("a@b").unwrap(), None);
        assert_eq!(one.take("a@b", Shard(1), "first").unwrap(), place(1, "first"));
        // A sign-up that was interrupted takes it again.
        assert_eq!(one.take("a@b", Shard(1), "first").unwrap(), place(1, "first"));
        assert_eq!(other.take("a@b", Shard(1), "second").unwrap(), place(1, "first"));
        assert_eq!(other.take("a@b", Shard(2), "first").unwrap(), place(1, "first"));
        assert_eq!(other.find("a@b").unwrap(), Some(place(1, "first")));
        // Byte by byte.
        assert_eq!(other.take("A@b", Shard(2), "third").unwrap(), place(2, "third"));
        assert!(!other.give_up("a@b", Shard(2)).unwrap(), "it is not its own");
        assert!(one.give_up("a@b", Shard(1)).unwrap());
        assert!(!one.give_up("a@b", Shard(1)).unwrap());
        assert_eq!(other.take("a@b", Shard(3), "fourth").unwrap(), place(3, "fourth"));
        let too_long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(one.take(&too_long, Shard(0), "o").is_err() && one.take("c@d", Shard(0), &too_long).is_err());
        assert_eq!(one.find("c@d").unwrap(), None);
    });
}

#[test]
fn the_keys_of_an_imported_server_are_found() {
    on_both_directories(|one, other| {
        let hash = |number: usize| -> CredentialHash {
            let mut hash = [7; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            hash
        };
        let count = 2 * CREDENTIALS_BATCH + 3;
        let credentials: Vec<_> = (0..count).map(|number| (hash(number), Shard(2))).collect();
        for _ in 0..2 {
            assert_eq!(
                one.add_credentials(&credentials).unwrap(),
                Vec::<CredentialHash>::new()
            );
        }
        for number in [0, CREDENTIALS_BATCH, count - 1] {
            assert_eq!(
                other.find_credential(&hash(number)).unwrap(),
                Some(Shard(2)),
                "{number}"
            );
        }
        assert_eq!(other.find_credential(&hash(count)).unwrap(), None);
        let mixed = [(hash(count), Shard(3)), (hash(1), Shard(3))];
        assert_eq!(
            other.add_credentials(&mixed).unwrap(),
            [hash(1)],
            "it stays where it is"
        );
        assert_eq!(one.find_credential(&hash(1)).unwrap(), Some(Shard(2)));
        assert_eq!(one.find_credential(&hash(count)).unwrap(), Some(Shard(3)));
        assert!(one.add_credentials(&[]).unwrap().is_empty());
    });
}

#[test]
fn no_two_shards_give_out_the_same_ordinal() {
    for shards in [1, 64, SHARDS_MAX] {
        let ranges: Vec<_> = (0..shards).map(|shard| ordinals(Shard(shard), shards)).collect();
        assert!(
            ranges[0].start >= 1 << 31,
            "the lower half is for imported buckets"
        );
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let buckets = ranges.iter().map(ExactSizeIterator::len).min().unwrap();
        assert!(
            buckets * usize::from(shards) > (1 << 31) - 2 * usize::from(SHARDS_MAX),
            "{buckets}"
        );
    }
    on_both(|one, _| {
        let node = one.join("a", LEASE).unwrap();
        for shard in (0..4).map(Shard) {
            assert_eq!(
                one.claim(shard, node).unwrap().unwrap().ordinals,
                ordinals(shard, 4)
            );
        }
    });
}
