//! Where instructions stand in the source, and what the source calls their data.

use super::{DebugTypeId, LocId, Operand, ScopeId};

/// A source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// 1-based; 0 when the compiler did not say.
    pub line: u32,
    /// 1-based; 0 when the compiler did not say.
    pub column: u32,
    /// The innermost scope.
    pub scope: ScopeId,
    /// The call site this was inlined at.
    pub inlined_at: Option<LocId>,
}

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The file, with the directory joined when it is relative.
    pub file: String,
    /// The enclosing subprogram's name (`linkageName` is not used); empty when unknown.
    pub function: String,
    /// The line where the subprogram starts; 0 when unknown.
    pub line: u32,
}

/// A local variable or parameter of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Option<DebugTypeId>,
    /// What holds it.
    pub value: Operand,
    /// True: `value` is the address where it lives (`dbg.declare`). False: `value` is the value.
    pub address: bool,
    /// The variable is a pointer to so many bytes behind where `value` points to; of a piece, where in the variable it
    /// begins.
    pub offset: i64,
    /// Where it is declared.
    pub scope: Option<ScopeId>,
}

/// A global variable's debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugVariable {
    /// Its name in the source.
    pub name: String,
    /// Its type.
    pub ty: Option<DebugTypeId>,
    /// Where it is declared.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
    /// What 0 and 1 stand for, where the optimiser has kept of an integer only which of its two values it
    /// has.
    pub either: Option<[i64; 2]>,
    /// Which byte of the variable the global begins at: the optimiser may have split a variable.
    pub offset: i64,
    /// Is the global what the variable, a pointer, points to? So the optimiser may have it where an object is
    /// allocated once for all.
    pub points_to_it: bool,
}

/// A type of the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugType {
    /// `int`, `char`, `bool`, `double`...: its name, size in bytes, and encoding.
    Basic {
        /// Name.
        name: String,
        /// Bytes.
        size: u64,
        /// How to print it.
        encoding: DebugEncoding,
    },
    /// A pointer.
    Pointer(Option<DebugTypeId>),
    /// A C++ reference.
    Reference(Option<DebugTypeId>),
    /// A struct, class or union.
    Composite {
        /// Name; empty for an anonymous one.
        name: String,
        /// Bytes.
        size: u64,
        /// Non-static data members and base classes.
        members: Vec<DebugMember>,
        /// It is what a lambda expression or a closure captures: its members are called as the captured variables are.
        closure: bool,
    },
    /// An array of one dimension (several dimensions nest).
    Array {
        /// Element type.
        element: Option<DebugTypeId>,
        /// Element count; 0 when unknown.
        length: u64,
    },
    /// An enumeration: its size and its enumerators where they could be read.
    Enumeration {
        /// Name.
        name: String,
        /// Bytes.
        size: u64,
    },
    /// A typedef or a qualifier: transparent.
    Alias(Option<DebugTypeId>),
    /// A function type or something else without members.
    Other,
}

/// How a basic type is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DebugEncoding {
    Signed,
    Unsigned,
    Bool,
    Char,
    Float,
    Other,
}

/// A member of a composite type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugMember {
    /// Name; empty for a base class or an anonymous member.
    pub name: String,
    /// Offset in bytes (of the storage unit for a bit-field).
    pub offset: u64,
    /// Type.
    pub ty: Option<DebugTypeId>,
    /// Of a bit-field: its bits within the storage unit.
    pub bits: Option<BitRange>,
}

/// A range of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    /// The first bit, counted from the least significant one.
    pub first: u64,
    /// How many bits.
    pub width: u64,
}
