//! May two failures be one bug that is told in two ways? One rule, for `triage`, `verify` and `fix`.

use super::{failure, fingerprint, functions, variables};
use explain::Pattern;
use render::Solution;

/// By what bugs are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// The fingerprint of the cause; none where none is known, or it names no events.
    pub fingerprint: Option<String>,
    /// The family of the cause.
    pub pattern: String,
    /// The last members of what it is about.
    pub variables: Vec<String>,
    /// The functions of its events, with the names of their files.
    pub functions: Vec<String>,
    /// The kind and the place of the failure.
    pub failure: String,
}

impl Traits {
    /// Those of an answer.
    #[must_use]
    pub fn of(solution: &Solution) -> Self {
        let cause = solution.cause.as_ref();
        Self {
            fingerprint: fingerprint(solution).map(str::to_owned),
            pattern: cause.map(|cause| cause.pattern.clone()).unwrap_or_default(),
            variables: variables(solution),
            functions: functions(solution),
            failure: failure(solution),
        }
    }

    /// May the two be one bug? Two bugs may fail one check: of two causes that have neither a variable nor a function in
    /// common, that says nothing. That threads wait for each other in a circle is a bug of its own, though its locks may be
    /// called by what they guard. Of a failure without a cause no more is known than its place.
    #[must_use]
    pub fn may_be_one_with(&self, other: &Self) -> bool {
        let same_failure = self.failure == other.failure;
        if self.fingerprint.is_none() || other.fingerprint.is_none() {
            return same_failure;
        }
        if self.fingerprint == other.fingerprint {
            return true;
        }
        let is_deadlock = |traits: &Self| traits.pattern == Pattern::Deadlock.name();
        if is_deadlock(self) != is_deadlock(other) {
            return false;
        }
        // What is done wrong at one place may be told as another kind of failure there.
        let same_failure = place(&self.failure) == place(&other.failure);
        let same_variables = !self.variables.is_empty() && self.variables == other.variables;
        let variable = share(&self.variables, &other.variables);
        let function = share(&self.functions, &other.functions);
        same_variables || (variable && function) || (same_failure && (variable || function))
    }

    /// Are both causes known, and two bugs? What is not known may always be the other one.
    #[must_use]
    pub fn are_apart(&self, other: &Self) -> bool {
        let told = self.fingerprint.is_some() && other.fingerprint.is_some();
        told && !self.may_be_one_with(other)
    }
}

/// Where it failed, of `double-free at a.c:1`.
pub(crate) fn place(failure: &str) -> &str {
    failure.rsplit_once(" at ").map_or(failure, |(_, place)| place)
}

fn share(one: &[String], other: &[String]) -> bool {
    one.iter().any(|name| other.contains(name))
}

#[cfg(test)]
mod tests {
    use super::Traits;

    fn traits(print: &str, variable: &str, function: &str, failure: &str) -> Traits {
        Traits {
            fingerprint: (!print.is_empty()).then(|| print.to_owned()),
            pattern: "atomicity".to_owned(),
            variables: vec![variable.to_owned()],
            functions: vec![function.to_owned()],
            failure: failure.to_owned(),
        }
    }

    #[test]
    fn two_causes_are_apart_where_neither_what_they_are_about_nor_the_place_joins_them() {
        let one = traits("a", "pages", "a.c:print", "exit at a.c:1");
        let apart = |other: &Traits| {
            assert_eq!(one.are_apart(other), other.are_apart(&one));
            one.are_apart(other)
        };
        assert!(!apart(&one));
        assert!(apart(&traits("b", "tray", "a.c:print", "exit at a.c:2")));
        assert!(!apart(&traits("b", "tray", "a.c:print", "exit at a.c:1")));
        assert!(apart(&traits("b", "tray", "a.c:take", "exit at a.c:1")));
        assert!(!apart(&traits("b", "tray", "a.c:print", "abort at a.c:1")));
        assert!(!apart(&traits("b", "pages", "a.c:take", "exit at a.c:2")));
        let deadlock = Traits { pattern: "deadlock".to_owned(), ..one.clone() };
        assert!(apart(&Traits { fingerprint: Some("b".to_owned()), ..deadlock }));
    }

    #[test]
    fn what_is_not_known_is_not_apart() {
        let one = traits("a", "pages", "a.c:print", "exit at a.c:1");
        let untold = traits("", "", "", "exit at a.c:2");
        assert!(!one.are_apart(&untold) && !untold.are_apart(&one));
        assert!(!one.may_be_one_with(&untold));
        assert!(one.may_be_one_with(&Traits { failure: one.failure.clone(), ..untold }));
    }
}
