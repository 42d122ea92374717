//! What the environment says to a program of OpenMP: a replay says the same, whatever the machine.

use std::collections::BTreeMap;
use std::process::Command;
use trace_format::layout::OPENMP_PREFIX as PREFIX;

/// The number of processors, which is the number of threads unless the program or its user says another;
/// of interest to `src/cc/library/openmp`.
const PROCESSORS: &str = "SYMBIOSIS_OMP_PROCESSORS";

/// The variables of this process and of its machine.
pub fn settings() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let own = |(name, _): &(String, String)| name.starts_with(PREFIX) || name == PROCESSORS;
    let mut settings: BTreeMap<String, String> =
        std::env::vars_os().filter_map(text).filter(own).collect();
    if let Ok(processors) = std::thread::available_parallelism() {
        settings.entry(PROCESSORS.to_owned()).or_insert_with(|| processors.to_string());
    }
    settings
}

/// The variables of a process that this one started, whose own may have been set on the way there (by a script, say).
pub fn settings_of(child: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let machine = settings().into_iter().filter(|(name, _)| !name.starts_with(PREFIX));
    machine.chain(child.clone()).collect()
}

/// Gives a program these settings and no others.
pub fn apply(settings: &BTreeMap<String, String>, command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            command.env_remove(name);
        }
    }
    command.envs(settings);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_settings_that_it_had() {
        let processors = settings().remove(PROCESSORS).and_then(|text| text.parse::<usize>().ok());
        assert!(processors.is_some_and(|processors| processors > 0));
        let mut command = Command::new("program");
        let had = BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "3".to_owned())]);
        apply(&had, &mut command);
        let given: Vec<_> = command.get_envs().filter(|(_, value)| value.is_some()).collect();
        assert_eq!(given, [("OMP_NUM_THREADS".as_ref(), Some("3".as_ref()))]);
    }
}
