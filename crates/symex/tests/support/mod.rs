//! Hand-written modules and streams.

use ir::types::{
    Block, BlockId, Call, Callee, ConstId, Constant, ConstantKind, DebugInfo, FuncId, Function,
    Global, GlobalId, InstId, InstKind, Instruction, Module, Operand, Ordering, Param, Type,
    TypeId,
};
use std::sync::Arc;
use symex::{Execution, Options, RecordedModule, Recording, SymexError, ThreadLog};
use trace_format::InMemory;
use trace_format::layout::{RuntimeEvent, SHORT_PAYLOAD, SYNC_PAYLOAD, SyncCoder, tag};

/// Executes a recording, which gives the same where each instruction is walked by itself.
pub fn execute(recording: &Recording, options: &Options) -> Result<Execution, SymexError> {
    let execution = symex::execute(recording, options);
    let one_by_one = Options { one_by_one: true, ..*options };
    let other = symex::execute(recording, &one_by_one);
    assert_eq!(format!("{execution:?}"), format!("{other:?}"));
    execution
}

pub const VOID: TypeId = TypeId(0);
pub const I1: TypeId = TypeId(1);
pub const I8: TypeId = TypeId(2);
pub const I32: TypeId = TypeId(3);
pub const I64: TypeId = TypeId(4);
pub const PTR: TypeId = TypeId(5);
const FUNCTION: TypeId = TypeId(6);

/// Functions are at this address plus 16 times their index.
pub const CODE: u64 = 0x40_0000;

/// A module under construction.
pub struct ModuleBuilder {
    pub module: Module,
    addresses: Vec<u64>,
}

impl ModuleBuilder {
    pub fn new() -> Self {
        let function = Type::Function { result: VOID, params: Vec::new(), varargs: true };
        let types = vec![
            Type::Void,
            Type::Int(1),
            Type::Int(8),
            Type::Int(32),
            Type::Int(64),
            Type::Pointer,
            function,
        ];
        let module = Module { types, debug: DebugInfo::default(), ..Module::default() };
        Self { module, addresses: Vec::new() }
    }

    pub fn constant(&mut self, ty: TypeId, kind: ConstantKind) -> Operand {
        self.module.constants.push(Constant { ty, kind });
        Operand::Const(ConstId(self.module.constants.len() as u32 - 1))
    }

    pub fn int(&mut self, ty: TypeId, value: u64) -> Operand {
        self.constant(ty, ConstantKind::Int(vec![value]))
    }

    /// A zero-initialised global of `size` bytes at `address`; gives its address as an operand.
    pub fn global(&mut self, name: &str, ty: TypeId, size: u64, address: u64) -> Operand {
        let zero = self.constant(ty, ConstantKind::Zero);
        let Operand::Const(init) = zero else { unreachable!() };
        self.module.globals.push(Global {
            name: name.into(),
            ty,
            size,
            init: Some(init),
            thread_local: false,
            constant: false,
            internal: true,
            debug: None,
        });
        self.addresses.push(address);
        let id = GlobalId(self.module.globals.len() as u32 - 1);
        self.constant(PTR, ConstantKind::Global(id, 0))
    }

    fn function(&mut self, name: &str, params: &[TypeId], result: TypeId) -> FuncId {
        self.module.functions.push(Function {
            name: name.into(),
            ty: FUNCTION,
            result,
            params: params.iter().map(|&ty| Param { ty, byval: None }).collect(),
            varargs: false,
            internal: false,
            mergeable: false,
            address_taken: false,
            intrinsic: name.starts_with("llvm."),
            noreturn: false,
            blocks: Vec::new(),
            instructions: Vec::new(),
            scope: None,
            returns: None,
            variables: Vec::new(),
            pieces: Vec::new(),
        });
        FuncId(self.module.functions.len() as u32 - 1)
    }

    pub fn declare(&mut self, name: &str, params: &[TypeId], result: TypeId) -> FuncId {
        self.function(name, params, result)
    }

    /// A function; `blocks` are instructions, the last of each a terminator. Instructions are
    /// numbered through.
    pub fn define(
        &mut self,
        name: &str,
        params: &[TypeId],
        result: TypeId,
        blocks: Vec<Vec<(InstKind, TypeId)>>,
    ) -> FuncId {
        let id = self.function(name, params, result);
        let function = &mut self.module.functions[id.index()];
        for block in blocks {
            let first = InstId(function.instructions.len() as u32);
            for (kind, ty) in block {
                function.instructions.push(Instruction { kind, ty, loc: None });
            }
            let end = InstId(function.instructions.len() as u32);
            function.blocks.push(Block { first, end });
        }
        id
    }

    pub fn finish(self) -> RecordedModule {
        let count = self.module.functions.len() as u64;
        RecordedModule {
            ir: self.module,
            base: 1,
            functions: (0..count).map(|i| CODE + 16 * i).collect(),
            globals: self.addresses,
        }
    }
}

pub fn inst(id: u32) -> Operand {
    Operand::Inst(InstId(id))
}

pub fn load(address: Operand) -> InstKind {
    InstKind::Load { address, ordering: Ordering::NotAtomic, volatile: false, align: 1 }
}

pub fn store(address: Operand, value: Operand) -> (InstKind, TypeId) {
    let ordering = Ordering::NotAtomic;
    (InstKind::Store { address, value, ordering, volatile: false, align: 1 }, VOID)
}

pub fn call(callee: FuncId, args: &[Operand]) -> InstKind {
    InstKind::Call(Call {
        callee: Callee::Direct(callee),
        args: args.to_vec(),
        ty: FUNCTION,
        byval: vec![None; args.len()],
        must_tail: false,
    })
}

pub fn jump(block: u32) -> (InstKind, TypeId) {
    (InstKind::Br(BlockId(block)), VOID)
}

pub fn branch(condition: Operand, then: u32, otherwise: u32) -> (InstKind, TypeId) {
    (InstKind::CondBr(condition, BlockId(then), BlockId(otherwise)), VOID)
}

/// A thread's streams under construction. They are read in small pieces, so that what the executor
/// needs at once comes in several.
pub struct Stream {
    log: ThreadLog,
    streams: InMemory,
    sync: SyncCoder,
}

impl Stream {
    pub fn new(name: &str, serial: u64, parent: u64, start: Option<FuncId>) -> Self {
        let start_routine = start.map_or(0, |id| CODE + 16 * u64::from(id.0));
        let name = name.to_owned();
        let log = ThreadLog { name, serial, parent, start_routine, ..ThreadLog::default() };
        let streams = InMemory { piece: 3, ..InMemory::default() };
        Self { log, streams, sync: SyncCoder::default() }
    }

    fn entry(&mut self, kind: u32, payload: u32) -> &mut Self {
        self.streams.path.push((kind << tag::SHIFT) | payload);
        self
    }

    /// The arguments are pointers or 64 bits wide.
    pub fn enter(&mut self, function: FuncId, arguments: &[u64]) -> &mut Self {
        self.entry(tag::ENTER, function.0 + 1).words(arguments)
    }

    /// The arguments have 32 bits.
    pub fn enter_with_ints(&mut self, function: FuncId, arguments: &[u32]) -> &mut Self {
        self.entry(tag::ENTER, function.0 + 1).ints(arguments)
    }

    /// A function of any module, by its process-wide number. The arguments have 32 bits.
    pub fn enter_number(&mut self, number: u32, arguments: &[u32]) -> &mut Self {
        self.entry(tag::ENTER, number).ints(arguments)
    }

    /// A function of any module that its caller had named, by its process-wide number.
    pub fn called(&mut self, number: u32) -> &mut Self {
        self.entry(tag::ENTER, tag::CALLED | number)
    }

    /// A function that was called so came back.
    pub fn came_back(&mut self) -> &mut Self {
        self.entry(tag::RETURN, tag::CAME_BACK)
    }

    pub fn block(&mut self, block: u32) -> &mut Self {
        self.entry(tag::BLOCK, block + tag::BLOCK_BIAS)
    }

    /// Choices behind a leading one.
    pub fn choices(&mut self, choices: u32) -> &mut Self {
        self.entry(tag::RETURN, tag::CHOICES | choices)
    }

    /// The result is a pointer or has 64 bits, if there is one.
    pub fn ret(&mut self, words: &[u64]) -> &mut Self {
        self.entry(tag::RETURN, 1).words(words)
    }

    /// The result has 32 bits.
    pub fn ret_int(&mut self, result: u32) -> &mut Self {
        self.entry(tag::RETURN, 1).ints(&[result])
    }

    pub fn runtime(&mut self, event: RuntimeEvent, words: &[u64]) -> &mut Self {
        self.entry(tag::RUNTIME, event as u32);
        match (event, words) {
            (
                RuntimeEvent::SyncBegin | RuntimeEvent::SyncEnd,
                &[op, address, second, number, time],
            ) => {
                let mut bytes = [0; SYNC_PAYLOAD];
                let length = self.sync.write([op, address, second, number, time], &mut bytes);
                self.streams.values.extend(&bytes[..length]);
                self
            }
            (RuntimeEvent::Locked | RuntimeEvent::Unlocked, &[address, time]) => {
                let mut bytes = [0; SHORT_PAYLOAD];
                let length = self.sync.write_short(address, time, &mut bytes);
                self.streams.values.extend(&bytes[..length]);
                self
            }
            _ => self.words(words),
        }
    }

    pub fn words(&mut self, words: &[u64]) -> &mut Self {
        self.streams.values.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self
    }

    pub fn ints(&mut self, numbers: &[u32]) -> &mut Self {
        self.streams.values.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self
    }

    /// A call of `pthread_create` that made the thread with this serial.
    pub fn create(&mut self, serial: u64) -> &mut Self {
        self.runtime(RuntimeEvent::ThreadCreate, &[serial, 0x77, 0, 0]).ret_int(0)
    }

    /// A call of `pthread_join`.
    pub fn join(&mut self, serial: u64) -> &mut Self {
        self.runtime(RuntimeEvent::JoinBegin, &[serial]);
        self.runtime(RuntimeEvent::JoinEnd, &[serial, 0]).ret_int(0)
    }

    pub fn exit(&mut self) -> ThreadLog {
        self.runtime(RuntimeEvent::ThreadExit, &[0]);
        self.end()
    }

    pub fn end(&self) -> ThreadLog {
        ThreadLog { streams: Arc::new(self.streams.clone()), ..self.log.clone() }
    }
}

/// Walks a recording, which gives a valid event trace.
pub fn run(recording: &Recording) -> Execution {
    let execution = execute(recording, &Options::default()).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    execution
}

/// What a thread's events are, in its order.
pub fn kinds(execution: &Execution, thread: usize) -> Vec<&'static str> {
    let events = execution.trace.events.iter().filter(|event| event.thread.index() == thread);
    events.map(|event| event.kind.name()).collect()
}
