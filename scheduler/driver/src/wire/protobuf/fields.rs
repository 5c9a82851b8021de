//! A message, field by field.

/// A field whose value has a length: a text, bytes or a message. Of a number, `bytes` is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub number: u32,
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no protobuf")]
pub(crate) struct Malformed;

/// Why there is no field here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanting {
    /// It may be there with more bytes: with so many in all, if that can be told.
    More(Option<usize>),
    Malformed,
}

/// The fields of a whole message. After an error there are no more.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = Field::first(self.rest);
        self.rest = first.map_or(&[], |(_, length)| &self.rest[length..]);
        Some(first.map(|(field, _)| field).map_err(|_| Malformed))
    }
}

impl<'a> Field<'a> {
    /// The first field of these bytes, and how many of them it takes.
    pub fn first(bytes: &'a [u8]) -> Result<(Self, usize), Wanting> {
        let head = Head::first(bytes)?;
        let end = head.length.checked_add(head.value).ok_or(Wanting::Malformed)?;
        let value = bytes.get(head.length..end).ok_or(Wanting::More(Some(end)))?;
        let bytes = if head.is_delimited { value } else { &[] };
        Ok((Self { number: head.number, bytes }, end))
    }
}

/// What stands before the value of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub number: u32,
    pub is_delimited: bool,
    /// Of the head itself, …
    pub length: usize,
    /// … and of the value behind it.
    pub value: usize,
}

impl Head {
    pub fn first(bytes: &[u8]) -> Result<Self, Wanting> {
        let (key, key_length) = varint(bytes)?;
        let number = u32::try_from(key >> 3).map_err(|_| Wanting::Malformed)?;
        let behind = &bytes[key_length..];
        let (is_delimited, length, value) = match key & 7 {
            0 => (false, key_length, varint(behind)?.1),
            1 => (false, key_length, 8),
            2 => {
                let (value, length) = varint(behind)?;
                let value = usize::try_from(value).map_err(|_| Wanting::Malformed)?;
                (true, key_length + length, value)
            }
            5 => (false, key_length, 4),
            _ => return Err(Wanting::Malformed),
        };
        Ok(Self { number, is_delimited, length, value })
    }
}

/// A number of seven bits per byte, the lowest first, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Result<(u64, usize), Wanting> {
    const BYTES_MAX: usize = 10;
    let mut number: u64 = 0;
    for (at, byte) in bytes.iter().enumerate().take(BYTES_MAX) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((number, at + 1));
        }
    }
    Err(if bytes.len() < BYTES_MAX { Wanting::More(None) } else { Wanting::Malformed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_one_by_one_and_end_where_they_are_broken() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x22, 0x05, b'x'];
        let fields: Vec<_> = Fields::of(&message).collect();
        let field = |number, bytes| Ok(Field { number, bytes });
        assert_eq!(fields, [field(1, b""), field(2, b"hi"), field(3, b""), Err(Malformed)]);
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_wrong() {
        assert_eq!(Field::first(&[0x12]), Err(Wanting::More(None)));
        assert_eq!(Field::first(&[0x12, 4, 1]), Err(Wanting::More(Some(6))));
        assert_eq!(Field::first(&[0x0b]), Err(Wanting::Malformed), "a group");
        assert_eq!(Field::first(&[0xff; 12]), Err(Wanting::Malformed));
        let mut endless = vec![0x12];
        endless.extend([0xff; 9]);
        endless.push(1);
        assert_eq!(Field::first(&endless), Err(Wanting::Malformed));
    }
}
