//! What lines compute for each other by way of locals.

mod common;

use common::{c, cpp};
use ir::lines::{Lines, Use, uses};
use ir::types::Module;

/// The uses among all lines of the snippet, as `from>to`, with `!` for what is left at a first argument.
fn all(module: &Module) -> Vec<String> {
    let lines = Lines { file: &file(module), first: 1, last: 99 };
    let shown =
        |found: &Use| format!("{}>{}{}", found.from, found.to, if found.made { "!" } else { "" });
    uses(module, lines).iter().map(shown).collect()
}

fn file(module: &Module) -> String {
    let main = common::function(module, "main");
    module.debug.scopes[main.scope.expect("debug information").index()].file.clone()
}

#[test]
fn a_thread_s_handle_is_made_where_the_thread_is_created() {
    let source = "#include <pthread.h>
void keep(pthread_t *t);
int shared;
void *run(void *p);
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    shared = 1;
    keep(&t);
    pthread_join(t, 0);
    return 0;
}";
    for level in ["-O0", "-O2"] {
        let found = all(&c(level, source));
        for wanted in ["7>9!", "7>10!"] {
            assert!(found.iter().any(|one| one == wanted), "{level}: {wanted} in {found:?}");
        }
        let other = found.iter().find(|one| one.starts_with("8>") || one.contains(">8"));
        assert_eq!(other, None, "{level}: what is shared is not a matter of lines");
    }
}

#[test]
fn values_and_variables_of_the_function_lead_from_line_to_line() {
    let source = "int shared, other;
int twice(int n) { return 2 * n; }
int main(int argc, char **argv) {
    int seen = shared;
    int more = twice(seen);
    other = argc;
    return more;
}";
    let found = all(&c("-O0", source));
    assert!(["4>5", "5>7"].iter().all(|one| found.iter().any(|other| other == one)), "{found:?}");
    assert!(!found.iter().any(|one| one.contains(">6") || one.starts_with("6>")), "{found:?}");
    let found = all(&c("-O2", source));
    assert!(found.iter().any(|one| one == "4>5" || one == "4>2"), "{found:?}");
}

#[test]
fn an_object_is_made_by_its_constructor() {
    let source = "struct thread { thread(int); void join(); };
int shared;
int main() {
    thread one(1);
    shared = 1;
    one.join();
}";
    for level in ["-O0", "-O2"] {
        let found = all(&cpp(level, source));
        assert!(found.iter().any(|one| one == "4>6!"), "{level}: {found:?}");
        assert!(!found.iter().any(|one| one.contains(">5")), "{level}: {found:?}");
    }
}
