//! Values nobody asked for, and values kept as text: stepped over, yet checked to the last byte.

use super::scan::{Kind, Malformed, Scanner};

/// Most objects and arrays open at once, the body's own included; as deep as `serde_json` reads, so that what is
/// accepted here can be read by it later.
pub const DEPTH_MAX: u32 = 127;

impl Scanner<'_> {
    /// Steps over any value; `depth` says how many objects and arrays are open around it. No recursion: which of
    /// the open ones are objects is kept in the bits of one integer.
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
            // A value has ended, and with it perhaps what it stood in.
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
