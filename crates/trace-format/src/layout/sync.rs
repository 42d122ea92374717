//! The short forms in which synchronisation events are written.

/// How the payloads of synchronisation events are written. Both sides of a thread's stream keep one.
///
/// Those of [`SyncBegin`](super::RuntimeEvent::SyncBegin) and [`SyncEnd`](super::RuntimeEvent::SyncEnd)
/// are a `u32`, and behind it what that does not say.
/// The `u32` holds the operation (bits 0 to 7), flags, and in bits 16 to 31 the argument or result, as
/// a number with a sign. Words follow in the order of the payload: the address unless it is the one of
/// the event before; the second address if there is one; the argument or result if bits 16 to 31 have
/// no room for it; the time, as a `u32`, since that of the event before, or whole. No time since then
/// says that the clock was not read.
///
/// Those of [`Locked`](super::RuntimeEvent::Locked) and [`Unlocked`](super::RuntimeEvent::Unlocked) are a
/// byte that says in its bits 0 and 1 what of the address follows, and in its bits 2 and 3 what of the
/// time. The address: 0, nothing, it is the one of the event before; 1, a byte, its place among the
/// thread's recent addresses; 2, a word, which goes to its place among them. The time since that of the
/// event before: 0, nothing, the clock was not read; 1, a `u16`; 2, a `u32`; 3, the time is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCoder {
    /// The address of the event before.
    address: u64,
    /// Its time stamp.
    time: u64,
    /// Addresses of events in the shortest form.
    recent: Recent,
}

/// The address that came last of all that have the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recent([u64; 1 << u8::BITS]);

impl Default for Recent {
    fn default() -> Self {
        Self([0; 1 << u8::BITS])
    }
}

impl Recent {
    /// Where an address belongs: locks lie in arrays, and in objects of one size.
    fn place(address: u64) -> u8 {
        ((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }
}

/// The most bytes that [`SyncCoder`] writes for an event.
pub const SYNC_PAYLOAD: usize = 36;
/// The most bytes that [`SyncCoder`] writes for an event in the shortest form.
pub const SHORT_PAYLOAD: usize = 17;

impl SyncCoder {
    /// The address is another one than before.
    const ADDRESS: u32 = 1 << 8;
    /// There is a second address.
    const SECOND: u32 = 1 << 9;
    /// The argument or result is a word of its own.
    const WIDE: u32 = 1 << 10;
    /// The time is whole.
    const TIME: u32 = 1 << 11;

    /// The time stamp of the event before, 0 for none. An event with the same has no reading of the
    /// clock of its own.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Writes a payload; gives how many bytes it takes.
    pub fn write(&mut self, payload: [u64; 5], to: &mut [u8; SYNC_PAYLOAD]) -> usize {
        let [operation, address, second, number, time] = payload;
        let mut head = operation as u32 & 0xff;
        let mut at = 4;
        let mut put = |bytes: &[u8]| {
            if let Some(place) = to.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
                at += bytes.len();
            }
        };
        if address != self.address {
            head |= Self::ADDRESS;
            put(&address.to_le_bytes());
        }
        if second != 0 {
            head |= Self::SECOND;
            put(&second.to_le_bytes());
        }
        if number as i16 as u64 == number {
            head |= (number as u32) << 16;
        } else {
            head |= Self::WIDE;
            put(&number.to_le_bytes());
        }
        match time.checked_sub(self.time).and_then(|since| u32::try_from(since).ok()) {
            Some(since) => put(&since.to_le_bytes()),
            None => {
                head |= Self::TIME;
                put(&time.to_le_bytes());
            }
        }
        if let Some(place) = to.first_chunk_mut() {
            *place = head.to_le_bytes();
        }
        (self.address, self.time) = (address, time);
        at
    }

    /// Reads a payload at the beginning of `bytes`; gives it and how many bytes it took. `None`, and
    /// nothing changed, when it is not whole.
    pub fn read(&mut self, bytes: &[u8]) -> Option<([u64; 5], usize)> {
        let head = u32::from_le_bytes(*bytes.first_chunk()?);
        let mut at = 4;
        let mut word = |wanted: bool| -> Option<Option<u64>> {
            if !wanted {
                return Some(None);
            }
            let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
            at += 8;
            Some(Some(word))
        };
        let address = word(head & Self::ADDRESS != 0)?.unwrap_or(self.address);
        let second = word(head & Self::SECOND != 0)?.unwrap_or(0);
        let short = (head >> 16) as u16 as i16 as u64;
        let number = word(head & Self::WIDE != 0)?.unwrap_or(short);
        let time = match word(head & Self::TIME != 0)? {
            Some(time) => time,
            None => {
                let since = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
                at += 4;
                self.time.wrapping_add(u64::from(since))
            }
        };
        (self.address, self.time) = (address, time);
        Some(([u64::from(head & 0xff), address, second, number, time], at))
    }

    /// Writes the payload of an event in the shortest form; gives how many bytes it takes.
    #[inline]
    pub fn write_short(&mut self, address: u64, time: u64, to: &mut [u8; SHORT_PAYLOAD]) -> usize {
        let mut head = 0;
        let mut at = 1;
        if address != self.address {
            let place = Recent::place(address);
            let known = &mut self.recent.0[usize::from(place)];
            let [_, short, long @ ..] = to;
            if *known == address {
                head = 1;
                *short = place;
                at = 2;
            } else {
                head = 2;
                let [first, rest @ ..] = address.to_le_bytes();
                *short = first;
                if let Some(place) = long.first_chunk_mut() {
                    *place = rest;
                }
                *known = address;
                at = 9;
            }
        }
        let since = time.wrapping_sub(self.time);
        let mut put = |bytes: &[u8]| {
            if let Some(place) = to.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
                at += bytes.len();
            }
        };
        if let Ok(since) = u16::try_from(since) {
            if since != 0 {
                head |= 1 << 2;
                put(&since.to_le_bytes());
            }
        } else if let Ok(since) = u32::try_from(since) {
            head |= 2 << 2;
            put(&since.to_le_bytes());
        } else {
            head |= 3 << 2;
            put(&time.to_le_bytes());
        }
        to[0] = head;
        (self.address, self.time) = (address, time);
        at
    }

    /// Reads the payload of an event in the shortest form at the beginning of `bytes`; gives its address,
    /// its time, and how many bytes it took. `None`, and nothing changed, when it is not whole.
    pub fn read_short(&mut self, bytes: &[u8]) -> Option<(u64, u64, usize)> {
        let (&head, rest) = bytes.split_first()?;
        let (address, rest) = match head & 3 {
            0 => (self.address, rest),
            1 => {
                let (&place, rest) = rest.split_first()?;
                (self.recent.0[usize::from(place)], rest)
            }
            _ => {
                let (word, rest) = rest.split_first_chunk()?;
                (u64::from_le_bytes(*word), rest)
            }
        };
        let (time, rest) = match head >> 2 & 3 {
            0 => (self.time, rest),
            1 => {
                let (since, rest) = rest.split_first_chunk()?;
                (self.time.wrapping_add(u16::from_le_bytes(*since).into()), rest)
            }
            2 => {
                let (since, rest) = rest.split_first_chunk()?;
                (self.time.wrapping_add(u32::from_le_bytes(*since).into()), rest)
            }
            _ => {
                let (time, rest) = rest.split_first_chunk()?;
                (u64::from_le_bytes(*time), rest)
            }
        };
        if head & 3 > 1 {
            self.recent.0[usize::from(Recent::place(address))] = address;
        }
        (self.address, self.time) = (address, time);
        Some((address, time, bytes.len() - rest.len()))
    }
}
