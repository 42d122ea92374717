//! Loads whose value the function can guess, and that therefore are logged only when it is another.
//!
//! Most values that a function loads more than once from one place (one address, a constant offset, one
//! type) are what it loaded or stored there before. The instrumented function keeps that value, 0 at
//! first, compares, and logs one bit among the choices of its branches ([`crate::regions`]): 0 when it is
//! the same, 1 and the value itself when it is not. The executor keeps the same values. No analysis of
//! aliases is needed, since a wrong guess only costs the value.
//!
//! A stored value is kept when the log determines it ([`Known`]); the executor may know any other value
//! as an expression only. A load is guessed when a kept value may reach it: the place's base was not
//! computed anew since, and nothing unknown was stored there.

use crate::opaque::operand_type;
use crate::regions::{self, REGION_BITS};
use crate::types::{
    BinaryOp, CastOp, ConstantKind, Function, InstId, InstKind, Instruction, Module, Operand, Type,
    TypeId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The guessed loads of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guesses {
    /// Logged loads that log a bit, and their value behind a 1 only.
    pub loads: BTreeSet<InstId>,
    /// Logged loads, guessed ones among them, and stores whose value is kept: the place's number.
    pub kept: BTreeMap<InstId, usize>,
    /// Per place: the type of its value, a pointer or an integer of 8, 16, 32 or 64 bits.
    pub places: Vec<TypeId>,
}

/// The most bits of the sets of places, over all blocks, that are looked at; functions beyond it guess
/// nothing.
const MOST_BITS: usize = 1 << 26;
/// The most places of a function.
const MOST_PLACES: usize = 64;

/// What a function that logs these loads can guess. `arguments`: they are logged, too.
#[must_use]
pub fn guesses(
    module: &Module,
    function: &Function,
    logged: &BTreeSet<InstId>,
    never: &BTreeSet<InstId>,
    arguments: bool,
) -> Guesses {
    let places = Places::of(module, function, logged, arguments);
    let words = places.bases.len().div_ceil(64);
    if words == 0 || words.saturating_mul(64 * function.blocks.len()) > MOST_BITS {
        return Guesses::default();
    }
    let reaching = places.reaching(function, words);
    let mut loads = BTreeMap::new();
    for (block, mut known) in function.blocks.iter().zip(reaching) {
        let ids: Vec<InstId> = block.instructions().collect();
        let get = |id: InstId| function.instructions.get(id.index());
        let ends = |id: &InstId| get(*id).is_some_and(|inst| regions::ends_region(module, inst));
        let last_end = ids.iter().rposition(ends);
        let choice = get(block.terminator()).and_then(|inst| regions::choice(&inst.kind));
        let behind = choice.map_or(0, |choice| choice.bits);
        let mut bits = 0;
        for (at, &id) in ids.iter().enumerate() {
            if ends(&id) {
                bits = 0;
            }
            let room = REGION_BITS - if last_end.is_none_or(|end| at >= end) { behind } else { 0 };
            if let Some(&Access::Load(place)) = places.accesses.get(&id)
                && known.has(place)
                && bits < room
                && !never.contains(&id)
            {
                bits += 1;
                loads.insert(id, place);
            }
            places.pass(id, &mut known);
        }
    }
    places.numbered(&loads)
}

/// A place: what its address counts from, how many bytes away it is, its type.
type Place = (Operand, i64, TypeId);

/// What an instruction does to a place.
#[derive(Clone, Copy)]
enum Access {
    /// A logged load.
    Load(usize),
    /// A store of a value that the log determines.
    Store(usize),
}

/// All places that are loaded from.
struct Places {
    /// Per place: what its address counts from, and how far away it is.
    bases: Vec<(Operand, i64)>,
    types: Vec<TypeId>,
    accesses: BTreeMap<InstId, Access>,
    /// The places of which nothing is known behind an instruction.
    forgotten: BTreeMap<InstId, Vec<usize>>,
}

impl Places {
    fn of(
        module: &Module,
        function: &Function,
        logged: &BTreeSet<InstId>,
        arguments: bool,
    ) -> Self {
        let mut places = Self {
            bases: Vec::new(),
            types: Vec::new(),
            accesses: BTreeMap::new(),
            forgotten: BTreeMap::new(),
        };
        let mut numbers: HashMap<Place, usize> = HashMap::new();
        for &id in logged {
            let Some(instruction) = function.instructions.get(id.index()) else { continue };
            let InstKind::Load { address, .. } = instruction.kind else { continue };
            if !can_be_kept(module, instruction.ty) {
                continue;
            }
            let (base, offset) = base_of(function, address);
            let number = *numbers.entry((base, offset, instruction.ty)).or_insert_with(|| {
                places.bases.push((base, offset));
                places.types.push(instruction.ty);
                places.bases.len() - 1
            });
            places.accesses.insert(id, Access::Load(number));
        }
        if numbers.is_empty() {
            return places;
        }
        let mut at: HashMap<(Operand, i64), Vec<usize>> = HashMap::new();
        for (number, &(base, offset)) in places.bases.iter().enumerate() {
            at.entry((base, offset)).or_default().push(number);
            if let Operand::Inst(id) = base {
                places.forgotten.entry(id).or_default().push(number);
            }
        }
        let known = Known::of(module, function, logged, arguments);
        for (instruction, id) in function.instructions.iter().zip((0..).map(InstId)) {
            let InstKind::Store { address, value, .. } = instruction.kind else { continue };
            let place = base_of(function, address);
            let ty = operand_type(module, function, value);
            for &number in at.get(&place).into_iter().flatten() {
                if ty == places.types.get(number).copied() && known.operand(module, value) {
                    places.accesses.insert(id, Access::Store(number));
                } else {
                    places.forgotten.entry(id).or_default().push(number);
                }
            }
        }
        places
    }

    /// What is kept behind an instruction, when `known` is kept before it.
    fn pass(&self, id: InstId, known: &mut Set) {
        for &place in self.forgotten.get(&id).into_iter().flatten() {
            known.remove(place);
        }
        if let Some(&(Access::Load(place) | Access::Store(place))) = self.accesses.get(&id) {
            known.insert(place);
        }
    }

    /// Per block: the places of which a value may be kept at its start.
    fn reaching(&self, function: &Function, words: usize) -> Vec<Set> {
        let count = function.blocks.len();
        let mut starts = vec![Set::empty(words); count];
        let mut passed = vec![false; count];
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            let (Some(block), Some(known)) = (function.blocks.get(at), starts.get(at)) else {
                continue;
            };
            let mut known = known.clone();
            for id in block.instructions() {
                self.pass(id, &mut known);
            }
            let last = function.instructions.get(block.terminator().index());
            for target in last.map(|last| last.kind.successors()).unwrap_or_default() {
                let at = target.index();
                let (Some(start), Some(passed)) = (starts.get_mut(at), passed.get_mut(at)) else {
                    continue;
                };
                if start.join(&known) || !*passed {
                    *passed = true;
                    work.push(at);
                }
            }
        }
        starts
    }

    /// Only places with a guessed load are of use.
    fn numbered(&self, loads: &BTreeMap<InstId, usize>) -> Guesses {
        let mut guesses = Guesses::default();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for &place in loads.values() {
            let Some(&ty) = self.types.get(place) else { continue };
            if numbers.len() < MOST_PLACES && !numbers.contains_key(&place) {
                numbers.insert(place, numbers.len());
                guesses.places.push(ty);
            }
        }
        let chosen = |(id, place): (&InstId, &usize)| numbers.contains_key(place).then_some(*id);
        guesses.loads = loads.iter().filter_map(chosen).collect();
        for (&id, &(Access::Load(place) | Access::Store(place))) in &self.accesses {
            if let Some(&number) = numbers.get(&place) {
                guesses.kept.insert(id, number);
            }
        }
        guesses
    }
}

/// Can a value of the type be kept?
fn can_be_kept(module: &Module, ty: TypeId) -> bool {
    matches!(module.types.get(ty.index()), Some(Type::Pointer | Type::Int(8 | 16 | 32 | 64)))
}

/// What an address counts from, and how many bytes it is away.
fn base_of(function: &Function, address: Operand) -> (Operand, i64) {
    let (mut base, mut away) = (address, 0i64);
    // An unreachable block may compute an address from itself.
    for _ in 0..function.instructions.len() {
        let Operand::Inst(id) = base else { break };
        match function.instructions.get(id.index()).map(|instruction| &instruction.kind) {
            Some(InstKind::Gep { base: inner, offset, terms, .. }) if terms.is_empty() => {
                (base, away) = (*inner, away.wrapping_add(*offset));
            }
            Some(InstKind::Cast(CastOp::BitCast, inner)) => base = *inner,
            _ => break,
        }
    }
    (base, away)
}

/// The values of a function that follow from what is logged.
struct Known {
    /// Per instruction.
    results: Vec<bool>,
    arguments: bool,
}

impl Known {
    /// At first all results are taken for known that can be; then those are left out that are made of
    /// others.
    fn of(
        module: &Module,
        function: &Function,
        logged: &BTreeSet<InstId>,
        arguments: bool,
    ) -> Self {
        let can = |(instruction, id): (&Instruction, InstId)| {
            logged.contains(&id) || is_computed(&instruction.kind)
        };
        let results = function.instructions.iter().zip((0..).map(InstId)).map(can).collect();
        let mut known = Self { results, arguments };
        let mut changed = true;
        while changed {
            changed = false;
            for (instruction, id) in function.instructions.iter().zip((0..).map(InstId)) {
                if logged.contains(&id) || !known.operand(module, Operand::Inst(id)) {
                    continue;
                }
                let mut all = true;
                instruction.kind.for_each_operand(&mut |it| all &= known.operand(module, it));
                if let Some(result) = known.results.get_mut(id.index()).filter(|_| !all) {
                    *result = false;
                    changed = true;
                }
            }
        }
        known
    }

    fn operand(&self, module: &Module, operand: Operand) -> bool {
        match operand {
            Operand::Inst(id) => self.results.get(id.index()) == Some(&true),
            Operand::Param(_) => self.arguments,
            // Addresses of other modules' objects may not be in the log.
            Operand::Const(id) => module.constants.get(id.index()).is_some_and(|constant| {
                matches!(
                    constant.kind,
                    ConstantKind::Int(_) | ConstantKind::Null | ConstantKind::Zero
                )
            }),
            Operand::Other => false,
        }
    }
}

/// Is the result made of the operands alone, by operations that the executor computes?
fn is_computed(kind: &InstKind) -> bool {
    match kind {
        InstKind::Binary(op, ..) => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Shl
                | BinaryOp::LShr
                | BinaryOp::AShr
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
        ),
        InstKind::Cast(op, _) => matches!(
            op,
            CastOp::Trunc
                | CastOp::ZExt
                | CastOp::SExt
                | CastOp::PtrToInt
                | CastOp::IntToPtr
                | CastOp::BitCast
        ),
        InstKind::ICmp(..) | InstKind::Select(..) | InstKind::Phi(_) | InstKind::Gep { .. } => true,
        _ => false,
    }
}

/// A set of places.
#[derive(Clone)]
struct Set(Vec<u64>);

impl Set {
    fn empty(words: usize) -> Self {
        Self(vec![0; words])
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 != 0)
    }

    fn insert(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
        }
    }

    /// Takes the others in; says whether that changed anything.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }
}
