//! The owned IR: plain data, converted once from LLVM. No LLVM type escapes this crate.
//!
//! Instructions are numbered through the whole function in order of appearance, blocks in order of
//! appearance, functions and globals in module order (declarations included). The instrumenter
//! relies on these orders to find the LLVM values again.

mod debug;

pub use debug::{
    BitRange, DebugEncoding, DebugMember, DebugType, DebugVariable, LocalVariable, Location, Scope,
};

use std::collections::BTreeMap;
use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

index!(/// A type of a [`Module`].
    TypeId, "ty");
index!(/// A constant of a [`Module`].
    ConstId, "c");
index!(/// A global variable of a [`Module`].
    GlobalId, "@g");
index!(/// A function of a [`Module`], declarations included.
    FuncId, "@f");
index!(/// A basic block of a [`Function`].
    BlockId, "bb");
index!(/// An instruction of a [`Function`].
    InstId, "%i");
index!(/// A source location of a [`Module`] (line, column, scope, inlined-at).
    LocId, "loc");
index!(/// A lexical scope or subprogram of a [`Module`].
    ScopeId, "scope");
index!(/// A type of the debug information of a [`Module`].
    DebugTypeId, "dt");

/// One module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The source file's name as clang wrote it.
    pub source_file: String,
    /// Types.
    pub types: Vec<Type>,
    /// Constants.
    pub constants: Vec<Constant>,
    /// Global variables.
    pub globals: Vec<Global>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Names and places of the source.
    pub debug: DebugInfo,
}

/// A type. Sizes are in bytes under the module's data layout (x86-64, little-endian).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// No value.
    Void,
    /// An integer of `0` bits wide.
    Int(u32),
    /// A floating-point number.
    Float(FloatKind),
    /// A pointer: 8 bytes.
    Pointer,
    /// A struct.
    Struct {
        /// Field types.
        fields: Vec<TypeId>,
        /// Field offsets in bytes.
        offsets: Vec<u64>,
        /// Size with tail padding.
        size: u64,
        /// Its name, when it has one (`struct.queue`).
        name: Option<String>,
    },
    /// An array.
    Array {
        /// Element type.
        element: TypeId,
        /// Number of elements.
        length: u64,
    },
    /// A vector. Elements lie at multiples of their size; `<N x i1>` is never stored.
    Vector {
        /// Element type.
        element: TypeId,
        /// Number of elements.
        length: u32,
    },
    /// A function type.
    Function {
        /// Result.
        result: TypeId,
        /// Parameters.
        params: Vec<TypeId>,
        /// Has `...`.
        varargs: bool,
    },
    /// Label, metadata, token, x86_amx, scalable vector, target type.
    Other,
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum FloatKind {
    Half,
    BFloat,
    Single,
    Double,
    X87,
    Quad,
    PpcDouble,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its type.
    pub ty: TypeId,
    /// Its value.
    pub kind: ConstantKind,
}

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstantKind {
    /// An integer as little-endian 64-bit words, upper bits zero.
    Int(Vec<u64>),
    /// A floating-point number's bits, little-endian words (x87 has 80 bits).
    Float(Vec<u64>),
    /// The null pointer.
    Null,
    /// All zero, of any type.
    Zero,
    /// `undef` or `poison`.
    Undef,
    /// A struct, array or vector.
    Aggregate(Vec<ConstId>),
    /// An array or vector of integers as raw little-endian bytes.
    Bytes(Vec<u8>),
    /// The address of a global variable plus an offset in bytes. Constant `getelementptr`,
    /// `bitcast` and `addrspacecast` expressions are folded into these.
    Global(GlobalId, i64),
    /// The address of a function plus an offset.
    Function(FuncId, i64),
    /// The address of a block.
    BlockAddress(FuncId, BlockId),
    /// A constant expression that is none of the above: the same instruction over constants.
    /// Its operands are [`Operand::Const`] only.
    Expression(Box<InstKind>),
    /// Something this reader does not know, by name.
    Unknown(String),
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its symbol name.
    pub name: String,
    /// The type of its contents.
    pub ty: TypeId,
    /// The size in bytes.
    pub size: u64,
    /// Its initial value; `None` for a declaration.
    pub init: Option<ConstId>,
    /// Thread-local.
    pub thread_local: bool,
    /// Never written (`constant`).
    pub constant: bool,
    /// Private or internal linkage.
    pub internal: bool,
    /// An alias or ifunc is not a global variable and does not appear.
    pub debug: Option<DebugVariable>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol name.
    pub name: String,
    /// Its function type.
    pub ty: TypeId,
    /// The result's type.
    pub result: TypeId,
    /// Parameters.
    pub params: Vec<Param>,
    /// Has `...`.
    pub varargs: bool,
    /// Private or internal linkage.
    pub internal: bool,
    /// Other modules may define it as well, and the linker keeps one of them: inline functions,
    /// instances of templates.
    pub mergeable: bool,
    /// Its address is used other than as a direct callee, somewhere in the module.
    pub address_taken: bool,
    /// An LLVM intrinsic.
    pub intrinsic: bool,
    /// Never returns.
    pub noreturn: bool,
    /// The blocks; empty for a declaration (also for `available_externally`, which is treated as
    /// one). Block 0 is the entry.
    pub blocks: Vec<Block>,
    /// The instructions, in order through all blocks.
    pub instructions: Vec<Instruction>,
    /// Its subprogram.
    pub scope: Option<ScopeId>,
    /// What the source says that it returns, where that is a pointer or a reference and it has a body.
    pub returns: Option<DebugTypeId>,
    /// Local variables that live in memory or in a register, from debug intrinsics or records.
    pub variables: Vec<LocalVariable>,
    /// Values that are a part of a local variable: optimised code keeps a structure of two words in two registers.
    pub pieces: Vec<LocalVariable>,
}

impl Function {
    /// Has no body.
    #[must_use]
    pub fn is_declaration(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The block that an instruction is in.
    #[must_use]
    pub fn block_of(&self, instruction: InstId) -> Option<BlockId> {
        let block = self.blocks.iter().position(|b| (b.first..b.end).contains(&instruction))?;
        u32::try_from(block).ok().map(BlockId)
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its type.
    pub ty: TypeId,
    /// `byval(T)`: the size of the copy that the pointer points to.
    pub byval: Option<u64>,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its first instruction.
    pub first: InstId,
    /// One past its last instruction, which is the terminator.
    pub end: InstId,
}

impl Block {
    /// Its instructions.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = InstId> + use<> {
        (self.first.0..self.end.0).map(InstId)
    }

    /// Its terminator.
    #[must_use]
    pub fn terminator(&self) -> InstId {
        InstId(self.end.0 - 1)
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What it does.
    pub kind: InstKind,
    /// The type of its result; [`Type::Void`] for none.
    pub ty: TypeId,
    /// Where it stands in the source.
    pub loc: Option<LocId>,
}

/// A value used by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The result of an instruction of the same function.
    Inst(InstId),
    /// A parameter, by position.
    Param(u32),
    /// A constant.
    Const(ConstId),
    /// Metadata, or something that is not a value.
    Other,
}

/// Memory ordering of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Ordering {
    NotAtomic,
    Unordered,
    Monotonic,
    Acquire,
    Release,
    AcquireRelease,
    SequentiallyConsistent,
}

/// Integer and floating-point operations on two operands, elementwise on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

/// Conversions, elementwise on vectors except `BitCast`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CastOp {
    Trunc,
    ZExt,
    SExt,
    FpToUi,
    FpToSi,
    UiToFp,
    SiToFp,
    FpTrunc,
    FpExt,
    PtrToInt,
    IntToPtr,
    BitCast,
    AddrSpaceCast,
}

/// Integer predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Floating-point predicates (`O` ordered, `U` unordered).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum FloatPredicate {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Uno,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    True,
}

/// The operation of an `atomicrmw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RmwOp {
    Xchg,
    Add,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    Max,
    Min,
    UMax,
    UMin,
    FAdd,
    FSub,
    FMax,
    FMin,
    UIncWrap,
    UDecWrap,
    Other,
}

/// Who is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module, declared or defined.
    Direct(FuncId),
    /// Through a pointer.
    Indirect(Operand),
    /// Inline assembly: its text and constraints.
    Asm(String, String),
}

/// A call's parts, common to `call` and `invoke`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who.
    pub callee: Callee,
    /// The arguments.
    pub args: Vec<Operand>,
    /// The function type called through.
    pub ty: TypeId,
    /// Per argument: `byval` size.
    pub byval: Vec<Option<u64>>,
    /// `musttail`: nothing may come between the call and the return that follows it.
    pub must_tail: bool,
}

/// A term of a `getelementptr`: `index * scale` bytes, the index sign-extended or cut to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GepTerm {
    /// The index.
    pub index: Operand,
    /// Bytes per step.
    pub scale: u64,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstKind {
    /// `a op b`.
    Binary(BinaryOp, Operand, Operand),
    /// `-a` (floating point).
    FNeg(Operand),
    /// A conversion to the result's type.
    Cast(CastOp, Operand),
    /// Integer or pointer comparison.
    ICmp(IntPredicate, Operand, Operand),
    /// Floating-point comparison.
    FCmp(FloatPredicate, Operand, Operand),
    /// `if c { a } else { b }`; `c` may be a vector.
    Select(Operand, Operand, Operand),
    /// Per predecessor, the value.
    Phi(Vec<(BlockId, Operand)>),
    /// Stack memory: `count` elements of `size` bytes.
    Alloca {
        /// Element type.
        ty: TypeId,
        /// Bytes per element.
        size: u64,
        /// How many.
        count: Operand,
    },
    /// Reads memory.
    Load {
        /// The address.
        address: Operand,
        /// Atomicity.
        ordering: Ordering,
        /// `volatile`.
        volatile: bool,
        /// Alignment in bytes.
        align: u32,
    },
    /// Writes memory.
    Store {
        /// The address.
        address: Operand,
        /// The value.
        value: Operand,
        /// Atomicity.
        ordering: Ordering,
        /// `volatile`.
        volatile: bool,
        /// Alignment in bytes.
        align: u32,
    },
    /// `base + offset + Σ terms`. A vector of pointers is [`InstKind::Other`].
    Gep {
        /// The base address.
        base: Operand,
        /// What the base is taken to point to: the type that the first index counts.
        source: TypeId,
        /// The constant part in bytes.
        offset: i64,
        /// The variable parts.
        terms: Vec<GepTerm>,
    },
    /// Atomic read-modify-write.
    AtomicRmw {
        /// The operation.
        op: RmwOp,
        /// The address.
        address: Operand,
        /// The operand.
        value: Operand,
        /// Ordering.
        ordering: Ordering,
    },
    /// Compare-exchange; the result is `{value, i1}`.
    CmpXchg {
        /// The address.
        address: Operand,
        /// Expected.
        expected: Operand,
        /// Replacement.
        new: Operand,
        /// Ordering on success.
        ordering: Ordering,
        /// May fail spuriously.
        weak: bool,
    },
    /// A fence.
    Fence(Ordering),
    /// A call, intrinsics included.
    Call(Call),
    /// A call that may unwind; a terminator.
    Invoke {
        /// The call.
        call: Call,
        /// Where it goes on.
        normal: BlockId,
        /// Where it unwinds to.
        unwind: BlockId,
    },
    /// A field of an aggregate.
    ExtractValue(Operand, Vec<u32>),
    /// An aggregate with one field replaced.
    InsertValue(Operand, Operand, Vec<u32>),
    /// An element of a vector.
    ExtractElement(Operand, Operand),
    /// A vector with one element replaced: vector, element, index.
    InsertElement(Operand, Operand, Operand),
    /// A shuffle; `None` for an undefined lane.
    ShuffleVector(Operand, Operand, Vec<Option<u32>>),
    /// Where an exception arrives.
    LandingPad,
    /// `va_arg`.
    VaArg(Operand),
    /// `freeze`.
    Freeze(Operand),
    /// Return.
    Ret(Option<Operand>),
    /// Unconditional branch.
    Br(BlockId),
    /// Conditional branch: condition, then, else.
    CondBr(Operand, BlockId, BlockId),
    /// Switch: value, default, cases (the case value is an integer constant).
    Switch(Operand, BlockId, Vec<(ConstId, BlockId)>),
    /// Indirect branch.
    IndirectBr(Operand, Vec<BlockId>),
    /// Continues unwinding.
    Resume(Operand),
    /// Never reached.
    Unreachable,
    /// Anything else, by opcode name; counted as a gap where it is executed.
    Other(String, Vec<Operand>),
}

/// Debug information, reduced to what naming needs.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo {
    /// Locations.
    pub locations: Vec<Location>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Types.
    pub types: Vec<DebugType>,
    /// Source files that locations name, and the MD5 sum of the text that was compiled, in lower-case
    /// hexadecimal digits; empty where the compiler did not say (before DWARF 5).
    pub files: BTreeMap<String, String>,
}

impl Module {
    /// The type behind an identifier.
    ///
    /// # Panics
    /// When the identifier is not of this module.
    #[must_use]
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }

    /// The size in bytes that a value of the type takes in memory, alignment padding included.
    #[must_use]
    pub fn size_of(&self, id: TypeId) -> u64 {
        match self.ty(id) {
            Type::Void | Type::Function { .. } | Type::Other => 0,
            Type::Int(bits) => {
                let bytes = u64::from(bits.div_ceil(8)).next_power_of_two();
                if bytes > 16 { u64::from(bits.div_ceil(64)) * 8 } else { bytes }
            }
            Type::Float(kind) => match kind {
                FloatKind::Half | FloatKind::BFloat => 2,
                FloatKind::Single => 4,
                FloatKind::Double => 8,
                FloatKind::X87 | FloatKind::Quad | FloatKind::PpcDouble => 16,
            },
            Type::Pointer => 8,
            Type::Struct { size, .. } => *size,
            Type::Array { element, length } => self.size_of(*element) * length,
            Type::Vector { element, length } => {
                (self.size_of(*element) * u64::from(*length)).next_power_of_two()
            }
        }
    }

    /// The size in bytes that a load or store of the type touches.
    #[must_use]
    pub fn store_size(&self, id: TypeId) -> u64 {
        match self.ty(id) {
            Type::Int(bits) => u64::from(bits.div_ceil(8)),
            Type::Float(FloatKind::X87) => 10,
            Type::Vector { element, length } => self.store_size(*element) * u64::from(*length),
            _ => self.size_of(id),
        }
    }

    /// The width in bits of a scalar: integer, float or pointer.
    #[must_use]
    pub fn scalar_bits(&self, id: TypeId) -> Option<u32> {
        Some(match self.ty(id) {
            Type::Int(bits) => *bits,
            Type::Pointer => 64,
            Type::Float(FloatKind::X87) => 80,
            Type::Float(_) => u32::try_from(self.size_of(id)).ok()? * 8,
            _ => return None,
        })
    }
}
