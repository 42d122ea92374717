//! What lines compute for each other by way of locals.

use crate::common::{c, cpp};
use ir::lines::{How, Lines, Use, acts, read_again, uses};
use ir::types::Module;

/// The uses among all lines of the snippet, as `from>to`, with `!` for what is left at a first argument.
fn all(module: &Module) -> Vec<String> {
    let lines = Lines { file: &file(module), first: 1, last: 99 };
    let shown = |found: &Use| {
        format!(
            "{}>{}{}",
            found.from,
            found.to,
            match found.how {
                How::Value => "",
                How::Made => "!",
                How::Decided => "?",
            }
        )
    };
    uses(module, lines).iter().map(shown).collect()
}

fn file(module: &Module) -> String {
    let main = crate::common::function(module, "main");
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
fn what_a_branch_decides_uses_the_line_of_the_branch() {
    let source = "#include <assert.h>
int shared, other;
int find(int);
int main(int argc, char **argv) {
    int at = find(argc);
    if (at < 0)
        return 1;
    assert(argc > 0);
    shared = 1;
    if (argc > 2)
        other = 2;
    return 0;
}";
    let found = all(&c("-O0", source));
    let has = |wanted: &str| found.iter().any(|one| one == wanted);
    assert!(["5>6", "6>7?", "6>9?", "6>10?", "10>11?"].iter().all(|one| has(one)), "{found:?}");
    assert!(!["8>9?", "10>12?", "9>11?"].iter().any(|one| has(one)), "{found:?}");
}

#[test]
fn what_two_lines_load_is_no_use_though_the_compiler_loads_it_once() {
    let source = "struct list { int *items; int count; };
int tell(int), total;
int main(int argc, char **argv) {
    struct list *list = (struct list *)argv;
    int kept = list->count;
    tell(list->items[0]);
    total += list->items[0];
    return tell(kept);
}";
    let found = all(&c("-O1", source));
    assert!(found.iter().any(|one| one == "5>8"), "{found:?}");
    assert!(!found.iter().any(|one| one == "6>7"), "{found:?}");
}

#[test]
fn what_was_written_is_read_again_where_no_variable_holds_it() {
    let source = "struct ids { unsigned short last; int other; };
unsigned short next(struct ids *ids) {
    ids->last++;
    if (ids->last == 0) ids->last++;

    return ids->last;
}
unsigned short kept(struct ids *ids) {
    unsigned short own;
    ids->last++;
    if (ids->last == 0) ids->last++;
    own = ids->last;
    ids->other = 3;
    return own;
}
int main(int argc, char **argv) {
    struct ids *ids = (struct ids *)argv;
    return next(ids) + kept(ids);
}";
    for level in ["-O1", "-O2"] {
        let module = c(level, source);
        let behind = |first: u32, last: u32| -> Vec<String> {
            let found = read_again(&module, Lines { file: &file(&module), first, last });
            found.iter().map(|again| format!("{} {}", again.line, again.name)).collect()
        };
        assert_eq!(behind(3, 4), ["6 ids->last"], "{level}");
        assert_eq!(behind(3, 6), [""; 0], "{level}");
        assert_eq!(behind(10, 12), [""; 0], "{level}: the source keeps it");
    }
}

#[test]
fn the_object_of_a_member_function_is_computed_by_none_of_its_lines() {
    let source = "void post(int *);
struct pool {
    int units, items;
    void give() {
        post(&units);
        items++;
    }
};
int main(int argc, char **argv) {
    pool *one = (pool *)argv;
    auto give = [&] { one->give(); };
    give();
    return argc;
}";
    for level in ["-O0", "-O1"] {
        let found = all(&cpp(level, source));
        assert!(!found.iter().any(|one| one == "5>6"), "{level}: {found:?}");
    }
}

#[test]
fn a_line_acts_that_writes_for_others_or_calls_something() {
    let source = "int shared, *kept;
int twice(int);
int main(int argc, char **argv) {
    int own = shared;
    own += argc;
    *kept = own;
    return twice(own);
}";
    let module = c("-O0", source);
    let file = file(&module);
    let acts = |first, last| acts(&module, Lines { file: &file, first, last });
    assert_eq!(acts(4, 99).into_iter().collect::<Vec<_>>(), [6, 7]);
    assert!(acts(4, 5).is_empty() && acts(6, 5).is_empty());
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
