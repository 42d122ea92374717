//! Functions that do nothing but take or give back a lock, or wait for or announce something, which
//! their caller names: `my_lock(struct my_mutex *m)`, `Mutex::Lock`, `apr_thread_mutex_lock`. All of a
//! program's locks are taken on one line there and have one name, so people look at the calls.

use crate::effects;
use crate::types::{Call, Callee, CastOp, FuncId, Function, InstKind, Module, Operand};

/// Longer functions do more than that.
const LONGEST: usize = 400;
/// Wrappers of wrappers are followed this far.
const DEEPEST: usize = 4;
/// Addresses are followed through so many instructions.
const LONGEST_CHAIN: usize = 24;

/// What a wrapper does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Takes,
    Gives,
    Waits,
    Tells,
}

/// Where a wrapper has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The parameter that leads there, 0 being the first.
    pub parameter: usize,
    /// The place in bytes behind where the parameter points to.
    pub offset: i64,
    /// A pointer to the object lies there, and not the object itself.
    pub pointer: bool,
}

/// What a wrapper is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// The lock, or what is waited for or announced.
    pub object: Origin,
    /// The lock that a wait gives back, where that is its caller's, too.
    pub lock: Option<Origin>,
}

/// Where the functions are that a module only declares: the other modules of the program.
pub trait Bodies {
    /// The module that has the function's body, and the function there.
    fn body<'m>(&'m self, module: &'m Module, id: FuncId) -> Option<(&'m Module, &'m Function)>;
}

/// No other modules.
#[derive(Clone, Copy, Debug)]
pub struct NoBodies;

impl Bodies for NoBodies {
    fn body<'m>(&'m self, _: &'m Module, _: FuncId) -> Option<(&'m Module, &'m Function)> {
        None
    }
}

/// Where a wrapper has its object, if the function is one.
#[must_use]
pub fn wrapper(module: &Module, function: &Function, bodies: &dyn Bodies) -> Option<Wrapper> {
    wrapped(module, function, bodies, DEEPEST).map(|(_, object)| object)
}

fn wrapped(
    module: &Module,
    function: &Function,
    bodies: &dyn Bodies,
    depth: usize,
) -> Option<(Kind, Wrapper)> {
    let depth = depth.checked_sub(1)?;
    if function.instructions.len() > LONGEST || function.name == "main" {
        return None;
    }
    let mut found: Option<(Kind, Wrapper)> = None;
    for call in function.instructions.iter().filter_map(|it| it.kind.as_call()) {
        let Callee::Direct(id) = call.callee else {
            if matches!(call.callee, Callee::Asm(..)) {
                continue;
            }
            return None;
        };
        let callee = module.functions.get(id.index())?;
        let one = match (kind(&callee.name), body(module, id, bodies)) {
            (Some(kind), _) => {
                let object = origin(function, *call.args.first()?)?;
                let lock = call.args.get(1).filter(|_| kind == Kind::Waits);
                (kind, Wrapper { object, lock: lock.and_then(|lock| origin(function, *lock)) })
            }
            (None, None) => {
                // Of what nobody described it is not known whether it takes locks.
                if callee.intrinsic || effects::effect(&callee.name).is_some() {
                    continue;
                }
                return None;
            }
            (None, Some((module, callee))) => match wrapped(module, callee, bodies, depth) {
                Some((kind, inner)) => {
                    let object = behind(function, call, inner.object)?;
                    let lock = inner.lock.and_then(|lock| behind(function, call, lock));
                    (kind, Wrapper { object, lock })
                }
                None if synchronises(module, callee, bodies, depth) => return None,
                None => continue,
            },
        };
        found = match found {
            None => Some(one),
            Some((kind, known)) if (kind, known.object) == (one.0, one.1.object) => {
                let lock = known.lock.filter(|lock| one.1.lock == Some(*lock));
                Some((kind, Wrapper { lock, ..known }))
            }
            Some(_) => return None,
        };
    }
    found
}

/// The body of what a module calls, wherever it is.
fn body<'m>(
    module: &'m Module,
    id: FuncId,
    bodies: &'m dyn Bodies,
) -> Option<(&'m Module, &'m Function)> {
    let here = module.functions.get(id.index())?;
    match here.is_declaration() {
        // The compiler's own have none, and what the tables say of a library's holds for all of them.
        true if here.intrinsic || effects::effect(&here.name).is_some() => None,
        true => bodies.body(module, id),
        false => Some((module, here)),
    }
}

/// Where a function that calls a wrapper has the wrapper's object.
fn behind(function: &Function, call: &Call, inner: Origin) -> Option<Origin> {
    let outer = origin(function, *call.args.get(inner.parameter)?)?;
    match (outer.pointer, inner.pointer) {
        (true, true) => None,
        (true, false) => Some(outer),
        (false, pointer) => {
            Some(Origin { offset: outer.offset.checked_add(inner.offset)?, pointer, ..outer })
        }
    }
}

/// Does a function have to do with locks, as far as is known?
fn synchronises(module: &Module, function: &Function, bodies: &dyn Bodies, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    function.instructions.iter().filter_map(|it| it.kind.as_call()).any(|call| {
        let Callee::Direct(id) = call.callee else {
            return !matches!(call.callee, Callee::Asm(..));
        };
        let Some(callee) = module.functions.get(id.index()) else { return true };
        match body(module, id, bodies) {
            None => {
                let known = callee.intrinsic || effects::effect(&callee.name).is_some();
                kind(&callee.name).is_some() || !known
            }
            Some((module, callee)) => synchronises(module, callee, bodies, depth),
        }
    })
}

/// The parameter that an address comes from.
fn origin(function: &Function, address: Operand) -> Option<Origin> {
    traced(function, address, &|address| {
        kept_in(function, address).or_else(|| kept_behind(function, address))
    })
}

/// The same, with what is known of the value that a load finds.
fn traced(
    function: &Function,
    address: Operand,
    kept: &dyn Fn(Operand) -> Option<Operand>,
) -> Option<Origin> {
    let mut address = address;
    let mut found = Origin { parameter: 0, offset: 0, pointer: false };
    for _ in 0..LONGEST_CHAIN {
        let id = match address {
            Operand::Param(parameter) => {
                return Some(Origin { parameter: usize::try_from(parameter).ok()?, ..found });
            }
            Operand::Inst(id) => id,
            Operand::Const(_) | Operand::Other => return None,
        };
        address = match &function.instructions.get(id.index())?.kind {
            InstKind::Gep { base, offset, terms, .. } if terms.is_empty() => {
                found.offset = found.offset.checked_add(*offset)?;
                *base
            }
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner)
            | InstKind::Freeze(inner) => *inner,
            InstKind::Load { address, .. } => match kept(*address) {
                Some(value) => value,
                None if found.pointer => return None,
                None => {
                    found = Origin { offset: 0, pointer: true, ..found };
                    *address
                }
            },
            _ => return None,
        };
    }
    None
}

/// What is kept in a local variable that is written once.
fn kept_in(function: &Function, address: Operand) -> Option<Operand> {
    let Operand::Inst(id) = address else { return None };
    let local = function.instructions.get(id.index())?;
    if !matches!(local.kind, InstKind::Alloca { .. }) {
        return None;
    }
    let mut values = function.instructions.iter().filter_map(|it| match it.kind {
        InstKind::Store { address: to, value, .. } if to == address => Some(value),
        _ => None,
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// What is kept in a member that is written once, as a guard's constructor does with the lock that it takes then.
fn kept_behind(function: &Function, address: Operand) -> Option<Operand> {
    let place = |address| traced(function, address, &|address| kept_in(function, address));
    let member = place(address)?;
    let mut values = function.instructions.iter().filter_map(|it| match it.kind {
        InstKind::Store { address: to, value, .. } if place(to) == Some(member) => Some(value),
        _ => None,
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// What a function of the C library does with the object that its first argument points to.
fn kind(name: &str) -> Option<Kind> {
    const LOCKS: [&str; 4] = ["pthread_mutex_", "pthread_rwlock_", "pthread_spin_", "mtx_"];
    const CONDITIONS: [&str; 2] = ["pthread_cond_", "cnd_"];
    let behind = |heads: &[&str]| heads.iter().find_map(|head| name.strip_prefix(head));
    match name {
        "sem_wait" | "sem_trywait" | "sem_timedwait" | "sem_clockwait" => return Some(Kind::Takes),
        "sem_post" => return Some(Kind::Gives),
        _ => {}
    }
    match (behind(&LOCKS), behind(&CONDITIONS)) {
        (Some(rest), _) if rest.ends_with("unlock") => Some(Kind::Gives),
        (Some(rest), _) if rest.ends_with("lock") => Some(Kind::Takes),
        (_, Some(rest)) if rest.ends_with("wait") => Some(Kind::Waits),
        (_, Some("signal" | "broadcast")) => Some(Kind::Tells),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_what_they_do() {
        assert_eq!(kind("pthread_mutex_timedlock"), Some(Kind::Takes));
        assert_eq!(kind("pthread_rwlock_wrlock"), Some(Kind::Takes));
        assert_eq!(kind("pthread_spin_unlock"), Some(Kind::Gives));
        assert_eq!(kind("cnd_timedwait"), Some(Kind::Waits));
        assert_eq!(kind("pthread_cond_broadcast"), Some(Kind::Tells));
        for other in ["pthread_mutex_init", "pthread_cond_destroy", "sem_init", "flock"] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
