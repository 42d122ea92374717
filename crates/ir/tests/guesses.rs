//! Which loads are guessed.

use crate::common::{c, function, instructions, loads};
use ir::plan::{FunctionPlan, plan};
use ir::types::{InstKind, Module};

const LEVELS: [&str; 2] = ["-O1", "-O2"];
const TYPES: &str = "struct s { int i; struct s *next; }; int table[64];";

fn planned(level: &str, source: &str) -> (Module, FunctionPlan) {
    let module = c(level, &format!("{TYPES} {source}"));
    let planned = plan(&module, function(&module, "f"));
    assert!(planned.guesses.loads.is_subset(&planned.values), "{level}");
    assert_eq!(planned.guesses.loads.is_empty(), planned.guesses.places.is_empty(), "{level}");
    (module, planned)
}

#[test]
fn a_load_that_comes_again_is_guessed() {
    let source = "void f(struct s *s, int n) { for (int k = 0; k < n; k++) table[s->i] = k; }";
    for level in LEVELS {
        let (module, plan) = planned(level, source);
        let loads = loads(function(&module, "f"));
        assert!(!loads.is_empty() && loads.iter().all(|id| plan.guesses.loads.contains(id)));
        assert_eq!(plan.guesses.places.len(), 1, "{level}");
    }
}

#[test]
fn a_load_that_comes_once_or_from_elsewhere_is_not_guessed() {
    for source in [
        "int f(struct s *s) { return table[s->i]; }",
        "int f(struct s *s) { while (s->next) s = s->next; return s->i; }",
        "int f(struct s *s, int n) { int r = 0; while (n--) r += table[s[n].i]; return r; }",
    ] {
        for level in LEVELS {
            let (_, plan) = planned(level, source);
            assert!(!plan.values.is_empty() && plan.guesses.loads.is_empty(), "{level}: {source}");
            assert!(plan.guesses.kept.is_empty(), "{level}: {source}");
        }
    }
}

#[test]
fn what_was_stored_is_guessed_when_the_log_determines_it() {
    let stores = |value: &str| {
        format!(
            "void f(struct s *s, int n, int *u) {{ s->i = {value}; table[3] = 1; table[s->i] = 2; }}"
        )
    };
    for (value, guessed) in [("5", true), ("n * 2", true), ("*u", false)] {
        for level in LEVELS {
            let (module, plan) = planned(level, &stores(value));
            assert_eq!(!plan.guesses.loads.is_empty(), guessed, "{level} {value}");
            let stores =
                instructions(function(&module, "f"), |kind| matches!(kind, InstKind::Store { .. }));
            let kept = stores.iter().filter(|id| plan.guesses.kept.contains_key(id)).count();
            assert_eq!(kept, usize::from(guessed), "{level} {value}");
        }
    }
    let forgets = "void f(struct s *s, int *u) {
        table[s->i] = 1; s->i = *u; table[3] = 1; table[s->i] = 2; }";
    for level in LEVELS {
        let (_, plan) = planned(level, forgets);
        assert!(plan.guesses.loads.is_empty(), "{level}: nothing is known behind the store");
    }
}
