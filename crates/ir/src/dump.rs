//! The owned IR as text, for people and for tests: close to LLVM's own syntax, with the
//! identifiers of [`crate::types`].

use crate::types::{
    Block, BlockId, Call, Callee, ConstId, ConstantKind, Function, InstId, InstKind, Instruction,
    LocId, Module, Operand, Ordering, Type, TypeId,
};
use std::fmt::{self, Write};

/// The whole module.
#[must_use]
pub fn dump(module: &Module) -> String {
    let mut out = format!("; {}\n", module.source_file);
    for (global, index) in module.globals.iter().zip(0..) {
        let kind = if global.constant { "constant" } else { "global" };
        let thread = if global.thread_local { "thread_local " } else { "" };
        let ty = ty(module, global.ty);
        let init = global.init.map_or("external".to_owned(), |init| constant(module, init));
        let _ = writeln!(out, "@g{index} {} = {thread}{kind} {ty} {init}", global.name);
    }
    for function in &module.functions {
        out.push('\n');
        out.push_str(&dump_function(module, function));
    }
    out
}

/// One function.
#[must_use]
pub fn dump_function(module: &Module, function: &Function) -> String {
    let params: Vec<String> = function.params.iter().map(|param| ty(module, param.ty)).collect();
    let kind = if function.is_declaration() { "declare" } else { "define" };
    let result = ty(module, function.result);
    let mut out = format!("{kind} {result} {}({})", function.name, params.join(", "));
    for (flag, name) in [
        (function.varargs, "varargs"),
        (function.internal, "internal"),
        (function.address_taken, "address_taken"),
        (function.noreturn, "noreturn"),
    ] {
        if flag {
            let _ = write!(out, " {name}");
        }
    }
    out.push('\n');
    for variable in &function.variables {
        let held = if variable.address { "at" } else { "is" };
        let value = operand(module, variable.value);
        let moved = match variable.offset {
            0 => String::new(),
            bytes => format!("{bytes:+}"),
        };
        let _ = writeln!(out, "  ; {} {held} {value}{moved}", variable.name);
    }
    for (block, number) in function.blocks.iter().zip(0..) {
        let _ = writeln!(out, "{}:", BlockId(number));
        dump_block(module, function, block, &mut out);
    }
    out
}

fn dump_block(module: &Module, function: &Function, block: &Block, out: &mut String) {
    for id in block.instructions() {
        let Some(instruction) = function.instructions.get(id.index()) else { continue };
        let _ = writeln!(out, "  {}", dump_instruction(module, id, instruction));
    }
}

/// One instruction.
#[must_use]
pub fn dump_instruction(module: &Module, id: InstId, instruction: &Instruction) -> String {
    let body = Body { module, instruction: &instruction.kind };
    let place = instruction.loc.and_then(|loc| place(module, loc)).unwrap_or_default();
    match module.types.get(instruction.ty.index()) {
        Some(Type::Void) => format!("{id}: {body}{place}"),
        _ => format!("{id}: {} = {body}{place}", ty(module, instruction.ty)),
    }
}

fn place(module: &Module, loc: LocId) -> Option<String> {
    let location = module.debug.locations.get(loc.index())?;
    Some(format!(" ; {}:{}", location.line, location.column))
}

/// A type.
#[must_use]
pub fn ty(module: &Module, id: TypeId) -> String {
    let list = |types: &[TypeId]| {
        types.iter().map(|&field| ty(module, field)).collect::<Vec<_>>().join(", ")
    };
    match module.types.get(id.index()) {
        Some(Type::Void) => "void".to_owned(),
        Some(Type::Int(bits)) => format!("i{bits}"),
        Some(Type::Float(kind)) => format!("{kind:?}").to_lowercase(),
        Some(Type::Pointer) => "ptr".to_owned(),
        Some(Type::Struct { name: Some(name), .. }) => format!("%{name}"),
        Some(Type::Struct { fields, .. }) => format!("{{{}}}", list(fields)),
        Some(Type::Array { element, length }) => format!("[{length} x {}]", ty(module, *element)),
        Some(Type::Vector { element, length }) => format!("<{length} x {}>", ty(module, *element)),
        Some(Type::Function { result, params, varargs }) => {
            let dots = if *varargs { ", ..." } else { "" };
            format!("{} ({}{dots})", ty(module, *result), list(params))
        }
        Some(Type::Other) | None => "other".to_owned(),
    }
}

/// A constant.
#[must_use]
pub fn constant(module: &Module, id: ConstId) -> String {
    let Some(constant) = module.constants.get(id.index()) else { return id.to_string() };
    let offset = |offset: i64| if offset == 0 { String::new() } else { format!("{offset:+}") };
    match &constant.kind {
        ConstantKind::Int(words) => match words.as_slice() {
            [word] => word.to_string(),
            words => hex(words),
        },
        ConstantKind::Float(words) => hex(words),
        ConstantKind::Null => "null".to_owned(),
        ConstantKind::Zero => "zero".to_owned(),
        ConstantKind::Undef => "undef".to_owned(),
        ConstantKind::Aggregate(elements) => {
            let parts: Vec<String> =
                elements.iter().map(|&element| self::constant(module, element)).collect();
            format!("{{{}}}", parts.join(", "))
        }
        ConstantKind::Bytes(bytes) => format!("c\"{}\"", bytes.escape_ascii()),
        ConstantKind::Global(global, start) => {
            let name = module.globals.get(global.index()).map_or("?", |g| g.name.as_str());
            format!("@{name}{}", offset(*start))
        }
        ConstantKind::Function(function, start) => {
            let name = module.functions.get(function.index()).map_or("?", |f| f.name.as_str());
            format!("@{name}{}", offset(*start))
        }
        ConstantKind::BlockAddress(function, block) => format!("blockaddress({function}, {block})"),
        ConstantKind::Expression(kind) => {
            format!("({})", Body { module, instruction: kind })
        }
        ConstantKind::Unknown(text) => format!("unknown `{text}`"),
    }
}

fn hex(words: &[u64]) -> String {
    let mut out = "0x".to_owned();
    for word in words.iter().rev() {
        let _ = write!(out, "{word:016x}");
    }
    out
}

/// An operand.
#[must_use]
pub fn operand(module: &Module, operand: Operand) -> String {
    match operand {
        Operand::Inst(id) => id.to_string(),
        Operand::Param(index) => format!("%p{index}"),
        Operand::Const(id) => constant(module, id),
        Operand::Other => "_".to_owned(),
    }
}

/// What an instruction does, as text.
struct Body<'m> {
    module: &'m Module,
    instruction: &'m InstKind,
}

impl Body<'_> {
    fn op(&self, operand: Operand) -> String {
        self::operand(self.module, operand)
    }

    fn ops(&self, operands: &[Operand]) -> String {
        operands.iter().map(|&operand| self.op(operand)).collect::<Vec<_>>().join(", ")
    }

    fn call(&self, call: &Call) -> String {
        let callee = match &call.callee {
            Callee::Direct(function) => self
                .module
                .functions
                .get(function.index())
                .map_or("?".to_owned(), |function| format!("@{}", function.name)),
            Callee::Indirect(operand) => format!("*{}", self.op(*operand)),
            Callee::Asm(text, constraints) => format!("asm {text:?} {constraints:?}"),
        };
        format!("{callee}({})", self.ops(&call.args))
    }

    fn terminator(&self, f: &mut fmt::Formatter<'_>) -> Option<fmt::Result> {
        Some(match self.instruction {
            InstKind::Ret(None) => f.write_str("ret"),
            InstKind::Ret(Some(value)) => write!(f, "ret {}", self.op(*value)),
            InstKind::Br(target) => write!(f, "br {target}"),
            InstKind::CondBr(condition, then, otherwise) => {
                write!(f, "br {} ? {then} : {otherwise}", self.op(*condition))
            }
            InstKind::Switch(value, default, cases) => {
                let cases: Vec<String> = cases
                    .iter()
                    .map(|(case, block)| format!("{} => {block}", constant(self.module, *case)))
                    .collect();
                let cases = cases.join(", ");
                write!(f, "switch {} [{cases}] else {default}", self.op(*value))
            }
            InstKind::IndirectBr(target, blocks) => {
                write!(f, "indirectbr {} {blocks:?}", self.op(*target))
            }
            InstKind::Invoke { call, normal, unwind } => {
                write!(f, "invoke {} to {normal} unwind {unwind}", self.call(call))
            }
            InstKind::Resume(value) => write!(f, "resume {}", self.op(*value)),
            InstKind::Unreachable => f.write_str("unreachable"),
            _ => return None,
        })
    }

    fn memory(&self, f: &mut fmt::Formatter<'_>) -> Option<fmt::Result> {
        Some(match self.instruction {
            InstKind::Alloca { ty, count, .. } => {
                write!(f, "alloca {} x {}", self::ty(self.module, *ty), self.op(*count))
            }
            InstKind::Load { address, ordering, volatile, .. } => {
                write!(f, "load{} {}", flags(*ordering, *volatile), self.op(*address))
            }
            InstKind::Store { address, value, ordering, volatile, .. } => {
                let flags = flags(*ordering, *volatile);
                write!(f, "store{flags} {}, {}", self.op(*value), self.op(*address))
            }
            InstKind::Gep { base, offset, terms, .. } => {
                let mut text = format!("gep {} + {offset}", self.op(*base));
                for term in terms {
                    let _ = write!(text, " + {} * {}", self.op(term.index), term.scale);
                }
                f.write_str(&text)
            }
            InstKind::AtomicRmw { op, address, value, ordering } => {
                let (address, value) = (self.op(*address), self.op(*value));
                write!(f, "atomicrmw {op:?}{} {address}, {value}", flags(*ordering, false))
            }
            InstKind::CmpXchg { address, expected, new, ordering, .. } => {
                let operands = self.ops(&[*address, *expected, *new]);
                write!(f, "cmpxchg{} {operands}", flags(*ordering, false))
            }
            InstKind::Fence(ordering) => write!(f, "fence{}", flags(*ordering, false)),
            InstKind::VaArg(list) => write!(f, "va_arg {}", self.op(*list)),
            _ => return None,
        })
    }

    fn value(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            InstKind::Binary(op, a, b) => write!(f, "{op:?} {}", self.ops(&[*a, *b])),
            InstKind::FNeg(a) => write!(f, "FNeg {}", self.op(*a)),
            InstKind::Cast(op, a) => write!(f, "{op:?} {}", self.op(*a)),
            InstKind::ICmp(predicate, a, b) => {
                write!(f, "icmp {predicate:?} {}", self.ops(&[*a, *b]))
            }
            InstKind::FCmp(predicate, a, b) => {
                write!(f, "fcmp {predicate:?} {}", self.ops(&[*a, *b]))
            }
            InstKind::Select(c, a, b) => write!(f, "select {}", self.ops(&[*c, *a, *b])),
            InstKind::Phi(incoming) => {
                let incoming: Vec<String> = incoming
                    .iter()
                    .map(|(block, value)| format!("{block}: {}", self.op(*value)))
                    .collect();
                write!(f, "phi [{}]", incoming.join(", "))
            }
            InstKind::Call(call) => write!(f, "call {}", self.call(call)),
            InstKind::ExtractValue(a, path) => write!(f, "extractvalue {} {path:?}", self.op(*a)),
            InstKind::InsertValue(a, b, path) => {
                write!(f, "insertvalue {} {path:?}", self.ops(&[*a, *b]))
            }
            InstKind::ExtractElement(a, b) => write!(f, "extractelement {}", self.ops(&[*a, *b])),
            InstKind::InsertElement(a, b, c) => {
                write!(f, "insertelement {}", self.ops(&[*a, *b, *c]))
            }
            InstKind::ShuffleVector(a, b, mask) => {
                let lane = |lane: &Option<u32>| lane.map_or("_".to_owned(), |l| l.to_string());
                let mask = mask.iter().map(lane).collect::<Vec<_>>().join(" ");
                write!(f, "shufflevector {} [{mask}]", self.ops(&[*a, *b]))
            }
            InstKind::LandingPad => f.write_str("landingpad"),
            InstKind::Freeze(a) => write!(f, "freeze {}", self.op(*a)),
            InstKind::Other(name, operands) => write!(f, "other {name} {}", self.ops(operands)),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.terminator(f).or_else(|| self.memory(f)).unwrap_or_else(|| self.value(f))
    }
}

fn flags(ordering: Ordering, volatile: bool) -> String {
    let volatile = if volatile { " volatile" } else { "" };
    match ordering {
        Ordering::NotAtomic => volatile.to_owned(),
        ordering => format!("{volatile} {ordering:?}"),
    }
}
