//! What every store must do.

use objects::{Bytes, Existing, Listed, ObjectError, ObjectStore};

fn put(store: &dyn ObjectStore, name: &str, bytes: &str) -> Result<(), ObjectError> {
    store.put(name, Bytes::from(bytes.to_owned()), Existing::Refuse)
}

fn names(listed: &[Listed]) -> Vec<&str> {
    listed.iter().map(|object| object.name.as_str()).collect()
}

pub fn check(store: &dyn ObjectStore) {
    assert_eq!(store.list("shards").unwrap(), []);
    put(store, "shards/2/b", "second").unwrap();
    put(store, "shards/2/a", "").unwrap();
    put(store, "shards/10/a.root", "third").unwrap();
    put(store, "shards2/a", "beside").unwrap();

    let again = put(store, "shards/2/b", "second");
    assert!(matches!(again, Err(ObjectError::Exists(_))), "{again:?}");
    let same = store.put("shards/2/b", Bytes::from("second"), Existing::SameBytes);
    same.unwrap();
    for other in ["sEcond", "secon", "second2"] {
        let put = store.put("shards/2/b", Bytes::from(other), Existing::SameBytes);
        assert!(matches!(put, Err(ObjectError::Exists(_))), "{other}: {put:?}");
    }
    assert_eq!(&store.get("shards/2/b", 6).unwrap()[..], b"second");
    assert_eq!(&store.get("shards/2/a", 0).unwrap()[..], b"");

    let too_large = store.get("shards/2/b", 5);
    assert!(
        matches!(too_large, Err(ObjectError::TooLarge(_, 6, 5))),
        "{too_large:?}"
    );
    assert_eq!(&store.get_range("shards/2/b", 1..4).unwrap()[..], b"eco");
    assert_eq!(&store.get_range("shards/2/b", 0..6).unwrap()[..], b"second");
    assert_eq!(&store.get_range("shards/2/b", 3..3).unwrap()[..], b"");
    for beyond in [3..7, 6..8, 20..21] {
        let short = store.get_range("shards/2/b", beyond);
        assert!(matches!(short, Err(ObjectError::Short(..))), "{short:?}");
    }
    for missing in [store.get("shards/2/c", 1), store.get_range("shards/2/c", 0..1)] {
        assert!(matches!(missing, Err(ObjectError::NotFound(_))), "{missing:?}");
    }

    let listed = store.list("shards").unwrap();
    assert_eq!(names(&listed), ["shards/10/a.root", "shards/2/a", "shards/2/b"]);
    assert_eq!(listed.iter().map(|it| it.bytes).collect::<Vec<_>>(), [5, 0, 6]);
    assert_eq!(
        names(&store.list("shards/2").unwrap()),
        ["shards/2/a", "shards/2/b"]
    );

    for name in ["", "/a", "a/", "a//b", "a/../b", "ä", "a b", &"x".repeat(300)] {
        let refused = put(store, name, "");
        assert!(
            matches!(refused, Err(ObjectError::Name(_))),
            "{name}: {refused:?}"
        );
    }

    let gone = ["shards/2/a", "shards/2/none", "shards/10/a.root"].map(str::to_owned);
    store.delete(&gone).unwrap();
    store.delete(&[]).unwrap();
    assert_eq!(names(&store.list("shards").unwrap()), ["shards/2/b"]);
    assert_eq!(names(&store.list("shards2").unwrap()), ["shards2/a"]);
    store
        .delete(&["shards/2/b".to_owned(), "shards2/a".to_owned()])
        .unwrap();
}

/// An object of a little more than this many bytes is stored whole, and only once.
pub fn check_large(store: &dyn ObjectStore, bytes: usize) {
    let content: Vec<u8> = (0..bytes + 12_345).map(|at| (at / 7) as u8).collect();
    let content = Bytes::from(content);
    store.put("large", content.clone(), Existing::Refuse).unwrap();
    let again = store.put("large", content.clone(), Existing::Refuse);
    assert!(matches!(again, Err(ObjectError::Exists(_))), "{again:?}");
    store.put("large", content.clone(), Existing::SameBytes).unwrap();
    let end = content.len() as u64;
    assert_eq!(
        store.get_range("large", end - 20_000..end).unwrap(),
        content.slice(content.len() - 20_000..)
    );
    assert!(store.get("large", end).unwrap() == content);
}
