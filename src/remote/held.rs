//! The content of a mapped file as the bytes of an object.

use std::sync::Arc;

/// Keeps the map until the object is stored. Nothing is copied.
pub(super) fn object_bytes(map: Arc<dyn disk::Bytes>) -> objects::Bytes {
    struct Held(Arc<dyn disk::Bytes>);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            (*self.0).as_ref()
        }
    }
    objects::Bytes::from_owner(Held(map))
}
