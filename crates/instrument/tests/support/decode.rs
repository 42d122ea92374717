//! A decoder of its own: it follows the saved IR along a thread's streams, without the executor.
//! It evaluates nothing; every branch has to come out of the path stream.

use super::recording::Thread;
use ir::calls::is_left_out;
use ir::plan::{FunctionPlan, logged_bytes, plan};
use ir::regions::choice;
use ir::types::{BlockId, Call, Callee, ConstantKind, InstKind, Module, Operand};
use trace_format::layout::token;

const RETURN: u8 = 0x80;
const ENTER: u8 = 0x81;
const BLOCK: u8 = 0x82;
const CALLED: u8 = 0x84;
const CAME_BACK: u8 = 0x85;
const EXTERNAL_WRITE: u8 = 0x99;

/// The modules of a program with their bases and plans.
pub struct Program {
    modules: Vec<(u32, Module, Vec<FunctionPlan>)>,
}

/// What the decoder saw.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The constants given to `mark`, in order.
    pub marks: Vec<i64>,
    /// How often each function was entered through an `ENTER` entry.
    pub entries: Vec<String>,
    /// Those of them that were called by a caller that had named them.
    pub called: Vec<String>,
    /// The regions that outside code wrote: address and bytes.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// How many blocks were walked.
    pub blocks: usize,
}

/// Why a walk of a function ended other than by returning.
enum Exit {
    /// An exception goes to this block of a caller.
    Unwind(u32),
    /// The stream ended.
    End,
}

impl Program {
    /// `modules`: base and bitcode.
    pub fn new<'a>(modules: impl Iterator<Item = (u32, &'a [u8])>) -> Self {
        let read = |(base, bitcode): (u32, &[u8])| {
            let module = ir::read_bitcode(bitcode).expect("the bitcode reads");
            let plans = module.functions.iter().map(|f| plan(&module, f)).collect();
            (base, module, plans)
        };
        Self { modules: modules.map(read).collect() }
    }

    /// Follows one thread to the end of both of its streams.
    pub fn decode(&self, thread: &Thread) -> Decoded {
        let decoded = Decoded::default();
        let mut walker =
            Walker { program: self, thread, path: 0, value: 0, choices: (0, 0), decoded };
        while walker.peek().is_some() {
            // What happened before `main`, and the arguments of `main`.
            if walker.write() {
                continue;
            }
            match walker.enter() {
                Ok(()) => {}
                Err(Exit::End) => break,
                Err(Exit::Unwind(block)) => panic!("nobody catches at block {block}"),
            }
        }
        walker.pass_empty();
        assert_eq!(walker.path, thread.path.len(), "path entries are left");
        assert_eq!(walker.choices.1, 0, "choices are left");
        assert_eq!(walker.value, thread.values.len(), "bytes of values are left");
        walker.decoded
    }

    fn find(&self, number: u32) -> (usize, usize) {
        let inside = |(base, module, _): &(u32, Module, _)| {
            (*base..*base + module.functions.len() as u32).contains(&number)
        };
        let module = self.modules.iter().position(inside).expect("a number of some module");
        (module, (number - self.modules[module].0) as usize)
    }
}

struct Walker<'a> {
    program: &'a Program,
    thread: &'a Thread,
    path: usize,
    value: usize,
    /// What is left of the last token of choices: its bits, and how many of them.
    choices: (u32, u32),
    decoded: Decoded,
}

impl<'a> Walker<'a> {
    /// The token that comes next. All choices are made before another one.
    fn peek(&mut self) -> Option<u8> {
        self.pass_empty();
        assert_eq!(self.choices.1, 0, "choices are left at {}", self.path);
        self.thread.path.get(self.path).copied()
    }

    fn pass_empty(&mut self) {
        while self.thread.path.get(self.path) == Some(&1) {
            self.path += 1;
        }
    }

    /// The number behind a token.
    fn number(&mut self) -> u32 {
        let bytes = self.thread.path.get(self.path + 1..self.path + 5).expect("a whole number");
        self.path += 5;
        u32::from_le_bytes(bytes.try_into().expect("four bytes"))
    }

    /// The next so many bits of choices, which one token holds.
    fn choose(&mut self, bits: u32) -> usize {
        if self.choices.1 == 0 {
            let first = self.peek().expect("a token says where a branch went");
            let mut bytes = [first, 0, 0, 0];
            if let Some(long) = self.thread.path.get(self.path..self.path + 4) {
                bytes.copy_from_slice(long);
            }
            let token = token::choices(bytes);
            let (choices, length) =
                token.unwrap_or_else(|| panic!("no choices in {bytes:x?} at {}", self.path));
            self.path += length;
            self.choices = (choices, choices.ilog2());
        }
        let (token, left) = self.choices;
        let left = left.checked_sub(bits).expect("a choice within a token");
        self.choices.1 = left;
        (token >> left) as usize & ((1 << bits) - 1)
    }

    /// The bytes that outside code wrote, when that comes next.
    fn write(&mut self) -> bool {
        if self.choices.1 != 0 || self.peek() != Some(EXTERNAL_WRITE) {
            return false;
        }
        self.path += 1;
        let (address, length) = (self.word(), self.word());
        let bytes = (0..length.div_ceil(8)).flat_map(|_| self.word().to_le_bytes());
        let mut bytes: Vec<u8> = bytes.collect();
        bytes.truncate(length as usize);
        self.decoded.writes.push((address, bytes));
        true
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.skip(8).try_into().expect("eight bytes"))
    }

    fn skip(&mut self, count: usize) -> &'a [u8] {
        let thread: &'a Thread = self.thread;
        let bytes = thread.values.get(self.value..self.value + count).expect("as many bytes");
        self.value += count;
        bytes
    }

    /// A function with an `ENTER` entry.
    fn enter(&mut self) -> Result<(), Exit> {
        let entry = self.peek().ok_or(Exit::End)?;
        let called = entry == CALLED;
        assert!(called || entry == ENTER, "ENTER expected, {entry:#x} found at {}", self.path);
        let number = self.number();
        let (module, function) = self.program.find(number);
        let (_, source, _) = &self.program.modules[module];
        let function_ir = &source.functions[function];
        self.decoded.entries.push(function_ir.name.clone());
        if called {
            self.decoded.called.push(function_ir.name.clone());
        }
        for parameter in &function_ir.params {
            if !(called && is_left_out(source, parameter.ty)) {
                self.skip(logged_bytes(source, parameter.ty));
            }
        }
        self.body(module, function)
    }

    fn body(&mut self, module: usize, index: usize) -> Result<(), Exit> {
        let program: &'a Program = self.program;
        let (_, source, plans) = &program.modules[module];
        let (function, plan) = (&source.functions[index], &plans[index]);
        let mut block = BlockId(0);
        loop {
            self.decoded.blocks += 1;
            let range = &function.blocks[block.index()];
            let mut unwound = None;
            for id in range.instructions() {
                let instruction = &function.instructions[id.index()];
                let call = match &instruction.kind {
                    InstKind::Call(call) | InstKind::Invoke { call, .. } => Some(call),
                    _ => None,
                };
                if let Some(call) = call {
                    let result = self.call(module, call, plan.returns.contains(&id), |came_back| {
                        let left_out = came_back && is_left_out(source, instruction.ty);
                        if left_out { 0 } else { logged_bytes(source, instruction.ty) }
                    });
                    match (result, &instruction.kind) {
                        (Err(Exit::Unwind(pad)), InstKind::Invoke { unwind, .. })
                            if unwind.0 == pad =>
                        {
                            unwound = Some(*unwind);
                        }
                        (result, _) => result?,
                    }
                }
                if plan.readings.contains(&id) {
                    self.word();
                }
                let guessed = plan.guesses.loads.contains(&id) && self.choose(1) == 0;
                if plan.values.contains(&id) && !guessed {
                    self.skip(logged_bytes(source, instruction.ty));
                }
            }
            let last = &function.instructions[range.terminator().index()].kind;
            block = match last {
                InstKind::Ret(_) => return Ok(()),
                InstKind::Resume(_) | InstKind::Unreachable => return Err(self.unwinding()),
                _ => self.successor(plan, unwound, last),
            };
        }
    }

    fn successor(
        &mut self,
        plan: &FunctionPlan,
        unwound: Option<BlockId>,
        last: &InstKind,
    ) -> BlockId {
        let successors = last.successors();
        let next = match (unwound, choice(last), last) {
            (Some(pad), ..) => pad,
            (_, Some(choice), _) => choice.targets[self.choose(choice.bits)],
            (.., InstKind::Invoke { normal, .. }) => *normal,
            _ if successors.iter().all(|s| s == &successors[0]) => successors[0],
            _ => {
                let entry = self.peek().expect("an entry says where a branch went");
                assert_eq!(entry, BLOCK, "BLOCK expected, {entry:#x} found at {}", self.path);
                let number = self.number();
                self.path -= 5;
                BlockId(number)
            }
        };
        assert!(successors.contains(&next), "{next} is none of {successors:?}");
        if plan.blocks[next.index()] {
            assert_eq!(self.peek(), Some(BLOCK), "at {}", self.path);
            assert_eq!(self.number(), next.0, "at {}", self.path);
        }
        next
    }

    fn call(
        &mut self,
        module: usize,
        call: &Call,
        returns: bool,
        result_bytes: impl Fn(bool) -> usize,
    ) -> Result<(), Exit> {
        let (_, source, plans) = &self.program.modules[module];
        let callee = match call.callee {
            Callee::Direct(callee) => Some(&source.functions[callee.index()]),
            _ => None,
        };
        if returns {
            // `mark` returns what it is given; where the compiler made one call of two, the
            // result is all that is known.
            let place = self.decoded.marks.len();
            let came_back = self.outside()?;
            let result = self.skip(result_bytes(came_back));
            if callee.is_some_and(|callee| callee.name == "mark") {
                let number = result.first_chunk().expect("an int");
                let number = i64::from(i32::from_le_bytes(*number));
                assert_eq!(constant(source, call).unwrap_or(number), number);
                self.decoded.marks.insert(place, number);
            }
        } else if callee.is_some_and(|callee| callee.name.starts_with("llvm.va_start")) {
            // The list, the arguments on the stack, the saved registers.
            assert!((0..3).all(|_| self.write()), "va_start writes three areas");
        } else if let Callee::Direct(id) = call.callee {
            if plans[id.index()].entry && !source.functions[id.index()].is_declaration() {
                self.enter()?;
            } else if !source.functions[id.index()].is_declaration() {
                self.body(module, id.index())?;
            }
        }
        Ok(())
    }

    /// A call of something outside: callbacks, then `RETURN`. Was the callee instrumented, and did it
    /// come back?
    fn outside(&mut self) -> Result<bool, Exit> {
        loop {
            if self.write() {
                continue;
            }
            let entry = self.peek().ok_or(Exit::End)?;
            match entry {
                ENTER | CALLED => self.enter()?,
                RETURN | CAME_BACK => {
                    self.path += 1;
                    return Ok(entry == CAME_BACK);
                }
                _ => return Err(self.unwinding()),
            }
        }
    }

    fn unwinding(&mut self) -> Exit {
        match self.peek() {
            Some(BLOCK) => {
                let number = self.number();
                self.path -= 5;
                Exit::Unwind(number)
            }
            Some(entry) => panic!("a landing pad expected, {entry:#x} found at {}", self.path),
            None => Exit::End,
        }
    }
}

/// The call's only argument when it is a constant.
fn constant(module: &Module, call: &Call) -> Option<i64> {
    let [Operand::Const(id)] = call.args.as_slice() else { return None };
    match &module.constants[id.index()].kind {
        ConstantKind::Int(words) => Some(i64::from(words[0] as u32 as i32)),
        ConstantKind::Zero => Some(0),
        _ => None,
    }
}
