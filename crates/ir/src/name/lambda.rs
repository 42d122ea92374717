//! What functions are called that the debug information calls `operator()`: of lambda expressions, and of
//! classes whose objects are called.

use super::demangle;

/// What the compiler calls the function.
const CALL: &str = "operator()";
/// What it calls the one that a lambda expression gives as a plain pointer.
const PLAIN: &str = "__invoke";

/// `lambda in start` for the function of a lambda expression in `Pool::start`, by its symbol, `lambda` where
/// it is in none, and `Worker::operator()` for that of a class; `None` for other functions.
#[must_use]
pub(crate) fn call_name(symbol: &str) -> Option<String> {
    let name = demangle(symbol);
    let parts = components(&name);
    let (call, around) = parts.split_last()?;
    let (class, around) = around.split_last()?;
    if !is_call(call) {
        return None;
    }
    if !is_lambda(class) {
        return call.starts_with(CALL).then(|| format!("{}::{CALL}", base(class)));
    }
    // A lambda expression in another one is in the function of the outer one.
    let outer = around.iter().rev().find(|part| !is_call(part) && !is_lambda(part));
    Some(match outer.map(|part| base(part)) {
        Some(function) if !function.is_empty() => format!("lambda in {function}"),
        _ => "lambda".to_owned(),
    })
}

fn is_call(component: &str) -> bool {
    component.starts_with(CALL) || component == PLAIN
}

fn is_lambda(component: &str) -> bool {
    ["$_", "{lambda", "'lambda"].iter().any(|start| component.starts_with(start))
}

/// A function's name without parameters and template arguments.
fn base(component: &str) -> &str {
    let end = component.find(['(', '<']).filter(|_| !component.starts_with("operator"));
    component[..end.unwrap_or(component.len())].trim_end()
}

/// What stands between `::` outside of brackets.
fn components(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0i32, 0);
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b')' | b'>' | b'}' | b']' => depth -= 1,
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                parts.push(&name[from..at]);
                from = at + 2;
            }
            _ => {}
        }
    }
    parts.push(&name[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lambda_is_called_by_the_function_that_it_is_in() {
        let name = call_name;
        let within = |function: &str| Some(format!("lambda in {function}"));
        assert_eq!(name("_ZZ4mainENK3$_0clEv"), within("main"));
        assert_eq!(name("_ZZN4Pool5startEiENKUlvE_clEv"), within("start"));
        assert_eq!(name("_ZZN3BoxIiE3putEiENKUliE0_clEi"), within("put"));
        assert_eq!(name("_ZZZ4mainENK3$_0clEvENKUlvE_clEv"), within("main"));
        assert_eq!(name("_ZNK3$_0clEv"), Some("lambda".to_owned()));
        assert_eq!(name("_ZZ4mainEN3$_08__invokeEPv"), within("main"));
        assert_eq!(name("_ZNK7CompareclEii"), Some("Compare::operator()".to_owned()));
        assert_eq!(name("_Z6workerPv"), None);
        assert_eq!(name("worker$1"), None);
    }
}
