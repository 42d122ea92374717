//! What inline assembly does, as far as its text and its constraints tell. The instrumenter and the
//! executor share it: what is understood here is computed by the executor, of everything else the
//! log says the results and what was written. A change here changes `INSTRUMENTATION_VERSION`.
//!
//! Understood are, in AT&T syntax: assembly that does nothing, fences, and one instruction of
//! [`Op`] followed by any number of `setCC`.

/// A piece of inline assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What `$0`, `$1`, ... are: outputs first, then inputs.
    pub operands: Vec<AsmOperand>,
    /// It says that it may read and write any memory.
    pub clobbers_memory: bool,
    /// What it does.
    pub action: Action,
}

/// An operand of inline assembly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsmOperand {
    /// It is written.
    pub output: bool,
    /// It lies in memory, at the address that is the argument.
    pub indirect: bool,
    /// The operand of an input's register is that of this output.
    pub tied: Option<usize>,
    /// Its register, when the constraint names one: `ax`; flags are `@ccz` and the like.
    pub register: Option<String>,
    /// The argument of the call that belongs to it: none for outputs in registers.
    pub argument: Option<usize>,
    /// The element of the result that belongs to it: only for outputs in registers.
    pub result: Option<usize>,
}

/// What inline assembly does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing; outputs are the inputs that they are tied to. `fence` when it orders memory.
    Nothing {
        /// It orders memory accesses.
        fence: bool,
    },
    /// An instruction that the executor computes.
    Instruction(AsmInstruction),
    /// Not known.
    Unknown,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmInstruction {
    /// What it computes.
    pub op: Op,
    /// It reads and writes memory in one step.
    pub atomic: bool,
    /// The width in bits, where the text tells; that of the register operand otherwise.
    pub bits: Option<u32>,
    /// The first operand of two.
    pub source: Option<Place>,
    /// The operand that is changed.
    pub target: Place,
    /// The flags that are stored after it.
    pub flags: Vec<(Flag, Place)>,
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A number.
    Immediate(i64),
    /// The operand of this index, in a register or as a number.
    Register(usize),
    /// Memory: so many bytes behind the address that is this argument of the call.
    Memory {
        /// The argument.
        argument: usize,
        /// Bytes from its address.
        displacement: i64,
    },
}

/// A condition of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The result was zero, or the comparison equal; or not (`false`).
    Zero(bool),
    /// The result was negative; or not (`false`).
    Negative(bool),
}

/// Instructions that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Mov,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Inc,
    Dec,
    Not,
    Neg,
    Bswap,
    Xadd,
    Xchg,
    Cmpxchg,
}

const OPS: &[(&str, Op)] = &[
    ("mov", Op::Mov),
    ("add", Op::Add),
    ("sub", Op::Sub),
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("inc", Op::Inc),
    ("dec", Op::Dec),
    ("not", Op::Not),
    ("neg", Op::Neg),
    ("bswap", Op::Bswap),
    ("xadd", Op::Xadd),
    ("xchg", Op::Xchg),
    ("cmpxchg", Op::Cmpxchg),
];

impl Op {
    fn is_unary(self) -> bool {
        matches!(self, Self::Inc | Self::Dec | Self::Not | Self::Neg | Self::Bswap)
    }

    /// Do the flags tell whether the result was zero or negative?
    fn sets_flags(self) -> bool {
        !matches!(self, Self::Mov | Self::Not | Self::Bswap | Self::Xchg)
    }
}

impl Assembly {
    /// Reads the text and the constraints as LLVM has them.
    #[must_use]
    pub fn parse(text: &str, constraints: &str) -> Self {
        let (operands, clobbers_memory) = operands(constraints);
        let mut assembly = Self { operands, clobbers_memory, action: Action::Unknown };
        assembly.action = assembly.read(text).unwrap_or(Action::Unknown);
        assembly
    }

    /// Is a call logged: its `RETURN`, what it wrote, and its result? It is when it has results
    /// that do not follow from its inputs, or touches memory.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        let mut outputs = (0..).zip(&self.operands).filter(|(_, operand)| operand.output);
        match &self.action {
            Action::Nothing { .. } => outputs.any(|(index, output)| {
                output.indirect == self.entry(index).is_some_and(|input| !input.indirect)
            }),
            Action::Instruction(instruction) => {
                instruction.memory().is_some() || outputs.count() > 0
            }
            Action::Unknown => self.clobbers_memory || outputs.count() > 0,
        }
    }

    /// Does the log have to say what was written? Not when the executor computes it.
    #[must_use]
    pub fn reports_writes(&self) -> bool {
        !matches!(self.action, Action::Instruction(_))
    }

    /// Whether an argument of the call is the address of an operand in memory that is written;
    /// `None` when it is not the address of such an operand at all.
    #[must_use]
    pub fn memory_argument(&self, argument: usize) -> Option<bool> {
        let operand = self.operands.iter().find(|operand| operand.argument == Some(argument))?;
        operand.indirect.then_some(operand.output)
    }

    /// The input that an operand holds at the beginning: itself, or the one tied to it.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<&AsmOperand> {
        let operand = self.operands.get(index)?;
        if !operand.output {
            return Some(operand);
        }
        let same = |input: &&AsmOperand| {
            let named = input.register.is_some() && input.register == operand.register;
            !input.output && (input.tied == Some(index) || named)
        };
        self.operands.iter().find(same)
    }

    /// The output in a register of this name.
    #[must_use]
    pub fn output_in(&self, register: &str) -> Option<usize> {
        let named = |operand: &AsmOperand| operand.register.as_deref() == Some(register);
        self.operands.iter().position(|operand| operand.output && named(operand))
    }

    fn read(&self, text: &str) -> Option<Action> {
        let (mut fence, mut found, mut locked) = (false, None::<AsmInstruction>, false);
        for statement in text.lines().flat_map(|line| uncommented(line).split(';')) {
            let mut words = statement.trim();
            let mut repeated = false;
            while let (prefix @ ("lock" | "rep"), rest) = mnemonic(words) {
                locked |= prefix == "lock";
                repeated |= prefix == "rep";
                words = rest;
            }
            let (name, rest) = mnemonic(words);
            match (name, rest) {
                // A prefix may stand alone, before the instruction in the next statement.
                ("", _) | ("nop" | "pause", "") | (".p2align" | ".balign" | ".align", _) => {}
                _ if repeated => return None,
                ("mfence" | "lfence" | "sfence", "") => fence = true,
                _ if locked && is_idle(name, rest) => (fence, locked) = (true, false),
                (set, _) if set.starts_with("set") => {
                    let flag = (flag(&set[3..])?, self.place(rest)?.0);
                    found.as_mut().filter(|found| found.op.sets_flags())?.flags.push(flag);
                }
                _ if found.is_some() => return None,
                _ => {
                    found = Some(self.instruction(name, rest, locked)?);
                    locked = false;
                }
            }
        }
        let Some(mut found) = found else {
            return (!locked).then_some(Action::Nothing { fence });
        };
        // Outputs that are flags.
        for (index, operand) in self.operands.iter().enumerate() {
            let Some(name) = operand.register.as_deref().and_then(|name| name.strip_prefix("@cc"))
            else {
                continue;
            };
            if let Some(flag) = flag(name).filter(|_| found.op.sets_flags()) {
                found.flags.push((flag, Place::Register(index)));
            }
        }
        (!fence && self.fits(&found)).then_some(Action::Instruction(found))
    }

    fn instruction(&self, name: &str, rest: &str, locked: bool) -> Option<AsmInstruction> {
        let of_name = |&&(op, _): &&(&str, Op)| {
            name.strip_prefix(op).is_some_and(|rest| matches!(rest, "" | "b" | "w" | "l" | "q"))
        };
        let &(stem, op) = OPS.iter().find(of_name)?;
        let bits = name.strip_prefix(stem).and_then(width);
        let mut operands = split(rest).into_iter().map(|text| self.place(text));
        let first = operands.next()??;
        let second = operands.next();
        if operands.next().is_some() || op.is_unary() != second.is_none() {
            return None;
        }
        let (mut source, mut target) = match second {
            Some(second) => (Some(first), second?),
            None => (None, first),
        };
        // An exchange is the same in both directions.
        if let (Op::Xchg, Some((Place::Memory { .. }, _))) = (op, source) {
            std::mem::swap(source.as_mut()?, &mut target);
        }
        let bits = bits.or(target.1).or(source.and_then(|source| source.1));
        let atomic = locked || op == Op::Xchg;
        let (source, target) = (source.map(|source| source.0), target.0);
        Some(AsmInstruction { op, atomic, bits, source, target, flags: Vec::new() })
    }

    /// Do the constraints allow what the instruction does? In another syntax, where the operands
    /// stand in the other order, they do not.
    fn fits(&self, instruction: &AsmInstruction) -> bool {
        let odd = |(index, operand): (usize, &AsmOperand)| {
            operand.output && operand.indirect && self.entry(index).is_some_and(|e| !e.indirect)
        };
        if self.operands.iter().enumerate().any(odd) {
            return false;
        }
        let is_memory = |place: Place| matches!(place, Place::Memory { .. });
        let written = |place: Place| match place {
            Place::Immediate(_) => false,
            Place::Register(index) => self.operands.get(index).is_some_and(|o| o.output),
            Place::Memory { argument, .. } => self.memory_argument(argument).unwrap_or(true),
        };
        let AsmInstruction { op, source, target, .. } = instruction;
        let exchange = matches!(op, Op::Xadd | Op::Xchg);
        let operands = match source {
            Some(source) if exchange => {
                is_memory(*target) && !is_memory(*source) && written(*source)
            }
            Some(source) if *op == Op::Cmpxchg => {
                is_memory(*target) && !is_memory(*source) && self.output_in("ax").is_some()
            }
            Some(source) => !(is_memory(*source) && is_memory(*target)),
            None => *op != Op::Bswap || !is_memory(*target),
        };
        let atomic = !instruction.atomic || is_memory(*target) && *op != Op::Mov;
        let mut flags = instruction.flags.iter();
        operands && atomic && written(*target) && flags.all(|&(_, place)| written(place))
    }

    /// An operand's place, and its width where the text tells.
    fn place(&self, text: &str) -> Option<(Place, Option<u32>)> {
        if let Some(number) = text.strip_prefix("$$") {
            return Some((Place::Immediate(immediate(number)?), None));
        }
        if let Some(inner) = text.strip_suffix(')') {
            let (displacement, base) = inner.split_once('(')?;
            let displacement = match displacement {
                "" => 0,
                number => immediate(number)?,
            };
            let (index, _) = reference(base)?;
            let operand = self.entry(index).filter(|operand| !operand.indirect)?;
            return Some((Place::Memory { argument: operand.argument?, displacement }, None));
        }
        let (index, bits) = reference(text)?;
        let operand = self.operands.get(index)?;
        Some(match operand.indirect {
            true => (Place::Memory { argument: operand.argument?, displacement: 0 }, bits),
            false => (Place::Register(index), bits),
        })
    }
}

impl AsmInstruction {
    /// The operand in memory.
    #[must_use]
    pub fn memory(&self) -> Option<Place> {
        let places = self.source.into_iter().chain([self.target]);
        let places = places.chain(self.flags.iter().map(|&(_, place)| place));
        places.into_iter().find(|place| matches!(place, Place::Memory { .. }))
    }
}

/// Operands, and whether memory is clobbered.
fn operands(constraints: &str) -> (Vec<AsmOperand>, bool) {
    let (mut operands, mut clobbers_memory) = (Vec::new(), false);
    let (mut arguments, mut results) = (0, 0);
    for constraint in constraints.split(',') {
        if let Some(clobber) = constraint.strip_prefix('~') {
            clobbers_memory |= clobber == "{memory}";
            continue;
        }
        let output = constraint.starts_with('=');
        let kind = constraint.trim_start_matches(['=', '&', '%']);
        let indirect = kind.starts_with('*');
        let kind = kind.trim_start_matches(['*', '&', '%']);
        let register = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}'));
        let next = |counter: &mut usize| {
            *counter += 1;
            Some(*counter - 1)
        };
        if constraint.is_empty() || constraint.starts_with('!') {
            continue;
        }
        let (argument, result) = match output && !indirect {
            true => (None, next(&mut results)),
            false => (next(&mut arguments), None),
        };
        operands.push(AsmOperand {
            output,
            indirect,
            tied: kind.parse().ok().filter(|_| !output),
            register: register.map(str::to_owned),
            argument,
            result,
        });
    }
    (operands, clobbers_memory)
}

fn uncommented(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

/// The first word, and what follows it.
fn mnemonic(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (name, rest.trim())
}

/// Operands between commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

/// A locked instruction that changes nothing at the top of the stack, as a fence.
fn is_idle(name: &str, rest: &str) -> bool {
    let known = matches!(name, "add" | "addl" | "addq" | "or" | "orl" | "orq");
    match split(rest).as_slice() {
        ["$$0" | "$$0x0", place] => {
            known && (place.ends_with("(%rsp)") || place.ends_with("(%esp)"))
        }
        _ => false,
    }
}

fn flag(condition: &str) -> Option<Flag> {
    Some(match condition {
        "z" | "e" => Flag::Zero(true),
        "nz" | "ne" => Flag::Zero(false),
        "s" => Flag::Negative(true),
        "ns" => Flag::Negative(false),
        _ => return None,
    })
}

fn width(suffix: &str) -> Option<u32> {
    Some(match suffix {
        "b" => 8,
        "w" => 16,
        "l" | "k" => 32,
        "q" => 64,
        _ => return None,
    })
}

fn immediate(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        // Others that begin with 0 are octal.
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// `$2` or `${2:b}`.
fn reference(text: &str) -> Option<(usize, Option<u32>)> {
    let text = text.trim().strip_prefix('$')?;
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    match inner.unwrap_or(text).split_once(':') {
        Some((index, modifier)) => Some((index.parse().ok()?, Some(width(modifier)?))),
        None => Some((inner.unwrap_or(text).parse().ok()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, AsmInstruction, Assembly, Flag, Op, Place};

    const ADDRESS: Place = Place::Memory { argument: 0, displacement: 0 };

    fn instruction(text: &str, constraints: &str) -> AsmInstruction {
        let assembly = Assembly::parse(text, constraints);
        assert!(assembly.is_logged() && !assembly.reports_writes(), "{text}");
        match assembly.action {
            Action::Instruction(instruction) => instruction,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn barriers_and_fences_are_not_logged() {
        for (text, fence) in [
            ("", false),
            (" # nothing", false),
            ("pause", false),
            ("rep; nop", false),
            ("rep\n\tnop", false),
            (".p2align 6\n\tnop", false),
            ("mfence", true),
            ("lock; addl $$0,0(%rsp)", true),
            ("lock orq $$0x0, (%rsp)", true),
        ] {
            let assembly = Assembly::parse(text, "~{memory},~{flags}");
            assert_eq!(assembly.action, Action::Nothing { fence }, "{text}");
            assert!(!assembly.is_logged(), "{text}");
        }
        assert!(!Assembly::parse("", "=r,0,~{flags}").is_logged(), "the input");
        assert!(!Assembly::parse("", "=*m,*m").is_logged(), "memory as it was");
        assert!(Assembly::parse("", "=r,~{flags}").is_logged(), "whatever the register held");
        assert!(Assembly::parse("", "=*r|m,0").is_logged(), "written back");
    }

    #[test]
    fn what_is_not_understood_is_logged_when_it_has_effects() {
        for (text, constraints, logged) in [
            ("cpuid", "={ax},={bx},={cx},={dx},0,2", true),
            ("movq $1, ($0)\n\tmovq $1, 8($0)", "r,r,~{memory}", true),
            ("rep movsb", "=&{di},=&{si},=&{cx},0,1,2,~{memory}", true),
            ("lock; cmpxchg16b $1", "={ax},=*m,0,*m", true),
            ("outb $0, $1", "{ax},N{dx}", false),
            ("lock", "~{memory}", true),
            ("1: jmp 1b", "", false),
            ("setc $0", "=q", true),
        ] {
            let assembly = Assembly::parse(text, constraints);
            assert_eq!(assembly.action, Action::Unknown, "{text}");
            assert!(assembly.is_logged() == logged && assembly.reports_writes(), "{text}");
        }
    }

    #[test]
    fn updates_of_memory_are_understood() {
        let add = instruction("lock; xaddl $0, $1", "=r,=*m,0,*m,~{memory},~{cc}");
        assert_eq!((add.op, add.atomic, add.bits), (Op::Xadd, true, Some(32)));
        assert_eq!((add.source, add.target), (Some(Place::Register(0)), ADDRESS));
        for text in ["xchg $0, 4($1)", "xchg 4($1), $0"] {
            let exchange = instruction(text, "=r,r,0,~{memory}");
            assert_eq!((exchange.op, exchange.atomic, exchange.bits), (Op::Xchg, true, None));
            assert_eq!(exchange.source, Some(Place::Register(0)), "{text}");
            assert_eq!(exchange.target, Place::Memory { argument: 0, displacement: 4 });
        }
        let swap = instruction("lock\n\tcmpxchgq ${2:q}, $1", "={ax},=*m,r,0,*m,~{memory}");
        assert_eq!(
            (swap.op, swap.bits, swap.source),
            (Op::Cmpxchg, Some(64), Some(Place::Register(2)))
        );
        let count = instruction("lock decl $0\n\tsete $1", "=*m,=*qm,*m,~{memory}");
        let second = Place::Memory { argument: 1, displacement: 0 };
        assert_eq!((count.target, count.flags), (ADDRESS, vec![(Flag::Zero(true), second)]));
        let flag = instruction("lock subl $3, $0", "=*m,={@ccnz},*m,ir,~{memory}").flags;
        assert_eq!(flag, [(Flag::Zero(false), Place::Register(1))]);
        let plain = instruction("orl $$-2, $0", "=*m,*m");
        assert_eq!((plain.atomic, plain.source), (false, Some(Place::Immediate(-2))));
    }

    #[test]
    fn operands_in_another_order_are_not_understood() {
        for (text, constraints) in [
            ("lock xadd $0, $1", "=*m,=r,*m,1"),
            ("mov $0, $1", "=*m,r"),
            ("lock incl $0", "=r,0"),
            ("lock incl $0", "*m,~{memory}"),
        ] {
            assert_eq!(Assembly::parse(text, constraints).action, Action::Unknown, "{text}");
        }
    }
}
