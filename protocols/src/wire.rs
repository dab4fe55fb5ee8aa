//! The wire format of protobuf, read in place: fields are handed out one by one and borrow from the message.
//!
//! Source: "Encoding" of the Protocol Buffers documentation. Unknown fields are skipped by whoever asks for the next. The
//! reader does not descend by itself, so that depth is bounded by the messages its callers know. Groups, which none of the
//! messages has, are not read.

/// Why a message cannot be read. A byte and no more, because every step of reading can return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The message is cut.
    #[error("it ends within a field")]
    Short,
    /// A known field does not have the type of this message.
    #[error("a field has the type of another message")]
    Type,
    /// 0, or a number beyond 32 bits.
    #[error("a field has no valid number")]
    FieldNumber,
    /// A group, or no wire type at all.
    #[error("a field has an unknown wire type")]
    WireType,
    /// A varint that does not end.
    #[error("a number is longer than 64 bits")]
    LongNumber,
    /// A string with other bytes.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// Attributes of arrays and maps in each other.
    #[error("a value is nested more than {} times", crate::otlp::NESTING_MAX)]
    Nesting,
    /// An odd number of references in remote write 2.0.
    #[error("a label has a name and no value")]
    OddLabels,
    /// A reference to no symbol in remote write 2.0.
    #[error("it refers to a symbol that it does not have")]
    Symbol,
}

/// A field's value as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire<'a> {
    /// An integer, boolean or enumeration.
    Varint(u64),
    /// A double, or an integer of 64 bits.
    Fixed64(u64),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// A float, or an integer of 32 bits.
    Fixed32,
}

/// The fields that are left of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) const fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The number and value of the next field; `None` at the end of the message.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).unwrap_or(0);
        if number == 0 {
            return Err(Malformed::FieldNumber);
        }
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| Malformed::Short)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            other => self.rare(other)?,
        };
        Ok(Some((number, value)))
    }

    /// Apart, because so few cases are branches, which are predicted better than a jump through a table.
    #[cold]
    fn rare(&mut self, wire: u64) -> Result<Wire<'a>, Malformed> {
        match wire {
            5 => {
                self.array::<4>()?;
                Ok(Wire::Fixed32)
            }
            _ => Err(Malformed::WireType),
        }
    }

    /// The bytes of the fields up to `rest`, the fields that are left of these.
    pub(crate) fn until(self, rest: Self) -> &'a [u8] {
        &self.rest[..self.rest.len() - rest.rest.len()]
    }

    /// Calls `each` with the number and value of every field.
    #[inline]
    pub(crate) fn each<E: From<Malformed>>(
        mut self,
        mut each: impl FnMut(u32, Wire<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((number, value)) = self.next()? {
            each(number, value)?;
        }
        Ok(())
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                if at == 9 && *byte > 1 {
                    break;
                }
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(match self.rest.len() < 10 {
            true => Malformed::Short,
            false => Malformed::LongNumber,
        })
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

impl<'a> Wire<'a> {
    /// The bytes of a string, message or `bytes`.
    #[inline]
    pub(crate) const fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::Type),
        }
    }

    /// A string.
    #[inline]
    pub(crate) fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed::NotUtf8)
    }

    /// The fields of a message.
    #[inline]
    pub(crate) fn message(self) -> Result<Fields<'a>, Malformed> {
        Ok(Fields::of(self.bytes()?))
    }

    /// An integer, boolean or enumeration, except for those of fixed size and `sint`.
    #[inline]
    pub(crate) const fn varint(self) -> Result<u64, Malformed> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(Malformed::Type),
        }
    }

    /// An integer of fixed size.
    #[inline]
    pub(crate) const fn fixed(self) -> Result<u64, Malformed> {
        match self {
            Self::Fixed64(bits) => Ok(bits),
            _ => Err(Malformed::Type),
        }
    }

    /// A double.
    #[inline]
    pub(crate) fn double(self) -> Result<f64, Malformed> {
        self.fixed().map(f64::from_bits)
    }
}

/// A message of two strings or messages with the numbers 1 and 2.
#[inline]
pub(crate) fn pair(value: Wire<'_>) -> Result<(&[u8], &[u8]), Malformed> {
    let message = value.bytes()?;
    // As senders write it: first the first, both shorter than 128 bytes.
    if let [0x0a, length @ 0..0x80, rest @ ..] = message
        && let Some((first, [0x12, length @ 0..0x80, second @ ..])) =
            rest.split_at_checked(usize::from(*length))
        && second.len() == usize::from(*length)
    {
        return Ok((first, second));
    }
    any_pair(message)
}

fn any_pair(message: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut pair = (&[][..], &[][..]);
    Fields::of(message).each(|number, value| {
        match number {
            1 => pair.0 = value.bytes()?,
            2 => pair.1 = value.bytes()?,
            _ => {}
        }
        Ok::<_, Malformed>(())
    })?;
    Ok(pair)
}

/// A repeated varint: packed, or one of several fields.
pub(crate) fn varints<'a>(
    value: Wire<'a>,
    mut each: impl FnMut(u64) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    match value {
        Wire::Bytes(packed) => {
            let mut packed = Fields::of(packed);
            while !packed.rest.is_empty() {
                each(packed.varint()?)?;
            }
            Ok(())
        }
        value => each(value.varint()?),
    }
}

/// A repeated number of 64 bits: packed, or one of several fields.
pub(crate) fn fixeds(value: Wire<'_>, mut each: impl FnMut(u64)) -> Result<(), Malformed> {
    match value {
        Wire::Bytes(packed) => {
            let (numbers, rest) = packed.as_chunks::<8>();
            numbers.iter().for_each(|bytes| each(u64::from_le_bytes(*bytes)));
            if rest.is_empty() {
                Ok(())
            } else {
                Err(Malformed::Short)
            }
        }
        value => {
            each(value.fixed()?);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, Malformed, Wire, fixeds, pair, varints};

    fn read(message: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, String> {
        let mut found = Vec::new();
        let read = Fields::of(message).each(|number, value| {
            found.push((number, value));
            Ok(())
        });
        read.map(|()| found).map_err(|error: Malformed| error.to_string())
    }

    #[test]
    fn fields_of_every_wire_type_are_read() {
        let message = [
            0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, b'h', b'i', 0x25, 1, 2, 3, 4, 0xf8,
            0x07, 0,
        ];
        assert_eq!(
            read(&message).unwrap(),
            [
                (1, Wire::Varint(150)),
                (2, Wire::Fixed64(1)),
                (3, Wire::Bytes(b"hi")),
                (4, Wire::Fixed32),
                (127, Wire::Varint(0)),
            ]
        );
    }

    #[test]
    fn numbers_have_at_most_64_bits() {
        let mut longest = vec![0x08];
        longest.extend([0xff; 9]);
        assert_eq!(
            read(&[&longest[..], &[1]].concat()).unwrap(),
            [(1, Wire::Varint(u64::MAX))]
        );
        for end in [&[2][..], &[0xff, 0]] {
            let error = read(&[&longest[..], end].concat()).unwrap_err();
            assert!(error.contains("longer than 64 bits"), "{error}");
        }
        assert_eq!(
            read(&[0x08, 0x80, 0x80, 0x80, 0x80, 0]).unwrap(),
            [(1, Wire::Varint(0))]
        );
    }

    #[test]
    fn what_ends_within_a_field_is_unreadable() {
        for message in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x11, 1, 2],
            &[0x1a, 3, 1, 2],
            &[0x25, 1],
            &[0x80],
        ] {
            let error = read(message).unwrap_err();
            assert!(error.contains("ends within a field"), "{message:?}: {error}");
        }
    }

    #[test]
    fn groups_and_field_zero_are_unreadable() {
        for message in [&[0x0b, 0x0c][..], &[0x0e], &[0x00, 1]] {
            assert!(read(message).is_err(), "{message:?}");
        }
    }

    #[test]
    fn pairs_have_their_parts_in_any_order_and_of_any_length() {
        let long = [&[0x0a, 1, b'a', 0x12, 0x80, 1][..], &[b'x'; 128]].concat();
        for (message, found) in [
            (&[0x0a, 1, b'a', 0x12, 1, b'b'][..], (&b"a"[..], &b"b"[..])),
            (&[0x12, 1, b'b', 0x0a, 1, b'a'], (b"a", b"b")),
            (&[0x0a, 1, b'a'], (b"a", b"")),
            (&[0x12, 1, b'b'], (b"", b"b")),
            (
                &[0x0a, 1, b'a', 0x12, 1, b'b', 0x18, 7, 0x12, 1, b'c'],
                (b"a", b"c"),
            ),
            (&[], (b"", b"")),
            (&long, (b"a", &[b'x'; 128])),
        ] {
            assert_eq!(pair(Wire::Bytes(message)), Ok(found), "{message:?}");
        }
        assert_eq!(pair(Wire::Bytes(&[0x0a, 2, b'a'])), Err(Malformed::Short));
        assert_eq!(
            pair(Wire::Bytes(&[0x0a, 1, b'a', 0x12, 2, b'b'])),
            Err(Malformed::Short)
        );
        assert_eq!(pair(Wire::Bytes(&[0x08, 1])), Err(Malformed::Type));
        assert_eq!(pair(Wire::Varint(1)), Err(Malformed::Type));
    }

    #[test]
    fn repeated_numbers_are_packed_or_not() {
        let mut found = Vec::new();
        for value in [Wire::Varint(7), Wire::Bytes(&[1, 0x80, 1])] {
            varints(value, |number| {
                found.push(number);
                Ok(())
            })
            .unwrap();
        }
        for value in [Wire::Fixed64(9), Wire::Bytes(&[3, 0, 0, 0, 0, 0, 0, 0])] {
            fixeds(value, |number| found.push(number)).unwrap();
        }
        assert_eq!(found, [7, 1, 128, 9, 3]);
        assert!(varints(Wire::Bytes(&[0x80]), |_| Ok(())).is_err());
        assert!(varints(Wire::Fixed64(1), |_| Ok(())).is_err());
        assert!(fixeds(Wire::Bytes(&[0; 9]), |_| ()).is_err());
        assert!(fixeds(Wire::Varint(1), |_| ()).is_err());
    }
}
