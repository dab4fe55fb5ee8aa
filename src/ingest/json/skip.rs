//! Skips values that are not needed or are kept as text. They are validated completely.

use super::scan::{Kind, Malformed, Scanner};

/// Maximum nesting of objects and arrays, including the body. The same limit as `serde_json`, which must be able to
/// read everything that is accepted here.
pub const DEPTH_MAX: u32 = 127;

impl Scanner<'_> {
    /// Skips any value. `depth` is the number of objects and arrays open around it. Not recursive: an integer holds one
    /// bit per open container, which says whether it is an object.
    pub fn skip_value(&mut self, depth: u32) -> Result<(), Malformed> {
        let (mut objects, mut opened) = (0u128, 0u32);
        loop {
            match self.kind()? {
                kind @ (Kind::Object | Kind::Array) => {
                    if depth + opened >= DEPTH_MAX {
                        return Err(self.malformed("nested too deeply"));
                    }
                    let object = kind == Kind::Object;
                    if self.open(if object { b'}' } else { b']' })? {
                        objects = objects << 1 | u128::from(object);
                        opened += 1;
                        if object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                Kind::String => {
                    self.string()?;
                }
                Kind::Number => {
                    self.number()?;
                }
                Kind::Boolean => {
                    self.boolean()?;
                }
                Kind::Null => self.null()?,
            }
            // A value has ended, and possibly the containers around it.
            loop {
                if opened == 0 {
                    return Ok(());
                }
                let object = objects & 1 == 1;
                if self.more(if object { b'}' } else { b']' })? {
                    if object {
                        self.name()?;
                    }
                    break;
                }
                objects >>= 1;
                opened -= 1;
            }
        }
    }
}
