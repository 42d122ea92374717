//! What the functions of the C and C++ libraries do to the memory that their callers can see.
//!
//! There is one line per function, in the files `effects/*.effects` of this crate (`README.md`
//! there says how a line is read). The instrumenter logs the bytes that a call wrote, the executor
//! makes events of the bytes that it read, and computes the functions that are
//! [`Kind::Computed`] itself. A function that is not in the table may write anything: there the
//! instrumenter logs the objects that its arguments point to.
//!
//! Sizes are those of glibc and libstdc++ on x86-64. A line may name more bytes than were written,
//! never fewer: logging a byte that did not change says nothing false about its value.

pub mod futex;
mod names;
mod parse;
mod printed;
mod table;
#[cfg(test)]
mod tests;

pub use names::readable;
pub use parse::EffectsError;
pub use printed::{Precision, Printed, printed};
pub use table::{Table, effect, table};

/// What a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name: a symbol, or the source's name of a C++ function without its parameters.
    pub name: String,
    /// The file that describes it, such as `libc.effects`.
    pub file: &'static str,
    /// The line there, from 1.
    pub line: u32,
    /// Who knows what it does.
    pub kind: Kind,
    /// How many parameters it has; more arguments are possible when it is variadic.
    pub parameters: u8,
    /// What it reads of its caller's memory.
    pub reads: Vec<Region>,
    /// What it writes of it.
    pub writes: Vec<Region>,
    /// Objects of the library that it uses and changes: parameter and size in bytes. Programs see
    /// them only through macros and inline functions; what these read there is an input.
    pub opaque: Vec<(u8, u64)>,
    /// The format that says what the further arguments are.
    pub format: Option<Format>,
    /// When the writes took place; `None` for always.
    pub when: Option<Success>,
    /// It may call functions of the program back.
    pub calls_back: bool,
    /// It may wait until another thread or process does something.
    pub waits: bool,
    /// It returns 0 after a while, and does nothing else.
    pub sleeps: bool,
    /// Of a computed function, the log has texts all the same: the executor may not know how long they were, where other
    /// threads write them.
    pub measured: Measured,
    /// What it writes is not said in full: besides `writes`, the objects that its arguments point
    /// to are taken to change, as for a function that nobody described.
    pub objects: bool,
    /// Variables of the library that it sets, by symbol (`optarg`).
    pub sets: Vec<String>,
}

/// Who knows what a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The table alone: the library's code does it, the log says what came out.
    Library,
    /// The executor computes what it does. What the line says is not logged.
    Computed,
    /// The log says what the line says, and the executor computes more.
    Completed,
    /// The runtime reports it: allocation, threads, synchronisation.
    Reported,
    /// It ends the program or the thread.
    Ends,
}

/// Which texts of a computed function the log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measured {
    /// None.
    #[default]
    Nothing,
    /// What it wrote.
    Written,
    /// And what it read.
    All,
}

/// Bytes of the caller's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where they begin. There are none when that is null.
    pub place: Place,
    /// How many they are.
    pub extent: Extent,
}

/// What a place is found from. Arguments count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The argument.
    Argument(u8),
    /// The result.
    Result,
}

/// Where something is: where `base` points; for each offset of `path`, the place is then where the
/// pointer points that lies so many bytes behind it (after the call, for what is written). A null
/// pointer on the way leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where to begin.
    pub base: Base,
    /// Offsets of pointers to follow.
    pub path: Vec<u16>,
}

/// How long a region is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// That many bytes. A negative number counts as 0, and so does one made of a negative result.
    Bytes(Number),
    /// Up to and with the first zero byte, but no more bytes than the number says. The bound is for
    /// what is read; nothing is written so.
    Text(Option<Number>),
    /// Up to and with the first `wchar_t` of value 0, but no more characters than the number says.
    Wide(Option<Number>),
    /// What an array of that many `struct iovec` describes; of what is written, the result says how
    /// many bytes in all.
    Vector(Number),
    /// An array of that many texts, and a null pointer behind them.
    Texts(Number),
    /// A table that never changes, reported when the program begins. At the place lies a pointer
    /// into it, with `before` bytes of the table's `length` in front. Tables count from 0 to 2.
    Table {
        /// Which.
        index: u8,
        /// How much of it lies in front of the pointer.
        before: u16,
        /// Its length in bytes.
        length: u64,
    },
}

/// A 64-bit number, evaluated after the call for what is written. Narrower integers have a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// This number.
    Constant(u64),
    /// The argument.
    Argument(u8),
    /// The result.
    Result,
    /// The 32-bit number where the argument points; 0 for a null pointer.
    Pointed32(u8),
    /// The 64-bit number that many bytes behind a place; 0 when that is nowhere.
    Word(Place, u16),
    /// The sum.
    Sum(Box<Number>, Box<Number>),
    /// The difference.
    Difference(Box<Number>, Box<Number>),
    /// The product.
    Product(Box<Number>, Box<Number>),
    /// The smaller one, without sign.
    Smaller(Box<Number>, Box<Number>),
    /// The lowest bit of it.
    Odd(Box<Number>),
}

/// A format and the arguments that it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Printed, or scanned?
    pub scans: bool,
    /// The argument that is the format.
    pub format: u8,
    /// The first argument that it speaks of.
    pub first: u8,
    /// The argument that is a `va_list` with them, instead.
    pub list: Option<u8>,
}

/// What the result has to be for the writes to have taken place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// 0, or null.
    Zero,
    /// Anything else.
    NotZero,
    /// Greater than 0, with a sign.
    Positive,
    /// 0 or greater, with a sign.
    NotNegative,
}

impl Success {
    /// Does a result, extended with its sign to 64 bits, mean success?
    #[must_use]
    pub fn holds(self, result: i64) -> bool {
        match self {
            Self::Zero => result == 0,
            Self::NotZero => result != 0,
            Self::Positive => result > 0,
            Self::NotNegative => result >= 0,
        }
    }
}

impl Declaration {
    /// Does it do nothing that instrumented code could see, and come back without waiting?
    #[must_use]
    pub fn is_unseen(&self) -> bool {
        let writes = !self.writes.is_empty() || self.scans() || self.objects;
        self.kind == Kind::Library && !writes && !self.waits && !self.calls_back && !self.sleeps
    }

    /// Does a format say what it writes?
    #[must_use]
    pub fn scans(&self) -> bool {
        self.format.is_some_and(|format| format.scans)
    }

    /// The highest argument that is mentioned.
    #[must_use]
    pub fn last_argument(&self) -> Option<u8> {
        let mut last = None;
        let mut note = |index: u8| last = last.max(Some(index));
        for region in self.reads.iter().chain(&self.writes) {
            region.for_each_argument(&mut note);
        }
        self.opaque.iter().for_each(|&(index, _)| note(index));
        last
    }
}

impl Region {
    /// Calls `note` with every argument that is mentioned.
    pub fn for_each_argument(&self, note: &mut impl FnMut(u8)) {
        if let Base::Argument(index) = self.place.base {
            note(index);
        }
        if let Some(number) = self.extent.number() {
            number.for_each(&mut |number| match number {
                Number::Argument(index)
                | Number::Pointed32(index)
                | Number::Word(Place { base: Base::Argument(index), .. }, _) => note(*index),
                _ => {}
            });
        }
    }
}

impl Place {
    /// Where the argument points.
    #[must_use]
    pub fn argument(index: u8) -> Self {
        Self { base: Base::Argument(index), path: Vec::new() }
    }

    /// Where the result points.
    #[must_use]
    pub fn result() -> Self {
        Self { base: Base::Result, path: Vec::new() }
    }

    /// The place behind the pointers at these offsets.
    #[must_use]
    pub fn along(&self, path: &[u16]) -> Self {
        Self { base: self.base, path: self.path.iter().chain(path).copied().collect() }
    }
}

impl Extent {
    /// The number in it.
    #[must_use]
    pub fn number(&self) -> Option<&Number> {
        match self {
            Self::Bytes(number) | Self::Vector(number) | Self::Texts(number) => Some(number),
            Self::Table { .. } => None,
            Self::Text(bound) | Self::Wide(bound) => bound.as_ref(),
        }
    }
}

impl Number {
    /// Calls `visit` with the number and every part of it.
    pub fn for_each(&self, visit: &mut impl FnMut(&Number)) {
        visit(self);
        if let Self::Sum(a, b)
        | Self::Difference(a, b)
        | Self::Product(a, b)
        | Self::Smaller(a, b) = self
        {
            a.for_each(visit);
            b.for_each(visit);
        }
        if let Self::Odd(inner) = self {
            inner.for_each(visit);
        }
    }

    /// Is the result a part of it?
    #[must_use]
    pub fn needs_result(&self) -> bool {
        let mut needs = false;
        self.for_each(&mut |part| needs |= part.is_result());
        needs
    }

    /// Does memory tell a part of it?
    #[must_use]
    pub fn is_of_memory(&self) -> bool {
        let mut is = false;
        self.for_each(&mut |part| is |= matches!(part, Self::Word(..) | Self::Pointed32(_)));
        is
    }

    fn is_result(&self) -> bool {
        matches!(self, Self::Result | Self::Word(Place { base: Base::Result, .. }, _))
    }

    /// Its value; `leaf` gives those of arguments, results and memory, as in
    /// [`Number::Argument`]. `None` when one of them is not known.
    pub fn value(&self, leaf: &mut impl FnMut(&Number) -> Option<u64>) -> Option<u64> {
        Some(match self {
            Self::Constant(value) => *value,
            Self::Sum(a, b) => a.value(leaf)?.wrapping_add(b.value(leaf)?),
            Self::Difference(a, b) => a.value(leaf)?.wrapping_sub(b.value(leaf)?),
            Self::Product(a, b) => a.value(leaf)?.wrapping_mul(b.value(leaf)?),
            Self::Smaller(a, b) => a.value(leaf)?.min(b.value(leaf)?),
            Self::Odd(inner) => inner.value(leaf)? & 1,
            part => leaf(part)?,
        })
    }
}
