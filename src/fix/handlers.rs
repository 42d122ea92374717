//! Functions that the program runs as handlers of signals.

use ir::types::{Callee, ConstantKind, FuncId, Function, InstKind, Module, Operand};
use std::collections::BTreeSet;
use symex::Recording;

/// What makes a function a handler: it is passed to one of these, or stored by who calls one of them.
const INSTALLERS: [&str; 5] = ["signal", "bsd_signal", "sysv_signal", "sigset", "sigaction"];

/// The names of the handlers, as events have them.
#[must_use]
pub fn handlers(recording: &Recording) -> Vec<String> {
    let modules = recording.modules.iter().map(|module| &module.ir);
    let names: BTreeSet<String> = modules.flat_map(of_module).collect();
    names.into_iter().collect()
}

fn of_module(module: &Module) -> Vec<String> {
    let installs = |function: &&Function| {
        function.instructions.iter().any(|instruction| {
            let call = match &instruction.kind {
                InstKind::Call(call) | InstKind::Invoke { call, .. } => call,
                _ => return false,
            };
            let Callee::Direct(callee) = call.callee else { return false };
            let callee = module.functions.get(callee.index());
            callee.is_some_and(|callee| INSTALLERS.contains(&callee.name.as_str()))
        })
    };
    let installing = module.functions.iter().filter(installs);
    let used = installing.flat_map(|function| function.instructions.iter()).flat_map(|one| {
        match &one.kind {
            InstKind::Call(call) | InstKind::Invoke { call, .. } => {
                let callee = match &call.callee {
                    Callee::Direct(callee) => module.functions.get(callee.index()),
                    _ => None,
                };
                // What a thread is created with is no handler.
                match callee.is_some_and(|callee| INSTALLERS.contains(&callee.name.as_str())) {
                    true => call.args.clone(),
                    false => Vec::new(),
                }
            }
            InstKind::Store { value, .. } => vec![*value],
            _ => Vec::new(),
        }
    });
    let functions = used.filter_map(|operand| function_of(module, operand));
    functions.filter_map(|function| name(module, function)).collect()
}

fn function_of(module: &Module, operand: Operand) -> Option<FuncId> {
    let Operand::Const(id) = operand else { return None };
    match module.constants.get(id.index())?.kind {
        ConstantKind::Function(function, 0) => Some(function),
        _ => None,
    }
}

/// As the debug information calls it.
fn name(module: &Module, function: FuncId) -> Option<String> {
    let function = module.functions.get(function.index())?;
    let scope = module.debug.scopes.get(function.scope?.index())?;
    Some(scope.function.clone())
}
