//! OpenMP's constructs in the source's words: the compiler makes functions of regions and tasks, and
//! variables of critical sections, whose names nobody wrote.

use crate::types::Scope;

/// What the compiler calls the function of a region or task.
const OUTLINED: &str = ".omp_outlined.";
/// What it adds for a region's own function, which another one of the first name calls.
const OWN: &str = "_debug__";
/// The constructs.
const REGION: &str = "parallel region";
const TASK: &str = "task";

/// Gives the compiler's functions the names of their constructs: `parallel region at sum.c:6`.
pub(crate) fn name_constructs(scopes: &mut [Scope]) {
    let outlined: Vec<(String, u32, bool)> = scopes
        .iter()
        .filter(|scope| scope.function.starts_with(OUTLINED))
        .map(|scope| (scope.file.clone(), scope.line, scope.function.contains(OWN)))
        .collect();
    // A region's own function begins behind the directive, where the one that calls it is said to be.
    let directive = |scope: &Scope| {
        let before = |(file, line, own): &&(String, u32, bool)| {
            !own && *file == scope.file && *line <= scope.line
        };
        outlined.iter().filter(before).map(|(_, line, _)| *line).max().unwrap_or(scope.line)
    };
    let is_own =
        |scope: &&Scope| scope.function.starts_with(OUTLINED) && scope.function.contains(OWN);
    let regions: Vec<(String, u32)> =
        scopes.iter().filter(is_own).map(|own| (own.file.clone(), directive(own))).collect();
    let names: Vec<Option<String>> = scopes
        .iter()
        .map(|scope| {
            scope.function.starts_with(OUTLINED).then(|| {
                let is_region = |line| regions.contains(&(scope.file.clone(), line));
                let (construct, line) = match scope.function.contains(OWN) {
                    true => (REGION, directive(scope)),
                    false if is_region(scope.line) => (REGION, scope.line),
                    false => (TASK, scope.line),
                };
                let file = scope.file.rsplit('/').next().unwrap_or(&scope.file);
                format!("{construct} at {file}:{line}")
            })
        })
        .collect();
    for (scope, name) in scopes.iter_mut().zip(names) {
        if let Some(name) = name {
            scope.function = name;
        }
    }
}

/// Is it the name of a construct's function, as [`name_constructs`] gives it?
#[must_use]
pub fn is_construct(function: &str) -> bool {
    let place = function.strip_prefix(REGION).or_else(|| function.strip_prefix(TASK));
    place.is_some_and(|place| place.starts_with(" at "))
}

/// The name of the variable that the compiler makes for a critical section, or for all reductions.
pub(crate) fn critical_section(symbol: &str) -> Option<String> {
    let name = symbol.strip_prefix(".gomp_critical_user_")?.strip_suffix(".var")?;
    Some(match name {
        "" => "critical".to_owned(),
        ".reduction" | ".atomic_reduction" => "reduction".to_owned(),
        name => format!("critical({name})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_constructs_are_named_after_them() {
        let scope = |function: &str, line| Scope {
            file: "/src/sum.c".to_owned(),
            function: function.to_owned(),
            line,
        };
        let mut scopes = [
            scope("main", 3),
            scope(".omp_outlined.", 9),
            scope(".omp_outlined._debug__.2", 7),
            scope(".omp_outlined..1", 6),
        ];
        name_constructs(&mut scopes);
        let names = scopes.map(|scope| scope.function);
        let (task, region) = ("task at sum.c:9", "parallel region at sum.c:6");
        assert_eq!(names, ["main", task, region, region]);
        assert!(is_construct(&names[1]) && is_construct(&names[3]) && !is_construct("main"));
    }

    #[test]
    fn critical_sections_have_the_names_of_their_directives() {
        let name = |symbol| critical_section(symbol);
        assert_eq!(name(".gomp_critical_user_store.var").as_deref(), Some("critical(store)"));
        assert_eq!(name(".gomp_critical_user_.var").as_deref(), Some("critical"));
        assert_eq!(name(".gomp_critical_user_.reduction.var").as_deref(), Some("reduction"));
        assert_eq!(name("store"), None);
    }
}
