//! What to change, for each group.

use super::solve::Options;
use super::{Triage, TriageError, process};
use crate::fix::answer::Fixes;
use std::ffi::OsStr;
use std::path::Path;

/// Adds the first repair that `symbiosis fix` finds for the first trace of each group with a cause. Where it finds
/// none, there is none. `done` is told of each group that is ready, by its number from 0.
///
/// # Errors
/// When a process cannot be started.
pub fn add_repairs(
    triage: &mut Triage,
    options: &Options,
    scratch: &Path,
    done: &dyn Fn(usize),
) -> Result<(), TriageError> {
    let runs: &[&OsStr] = if options.replay { &[] } else { &["--runs".as_ref(), "0".as_ref()] };
    for (number, group) in triage.groups.iter_mut().enumerate() {
        if let (Some(_), Some(first)) = (&group.fingerprint, group.traces.first()) {
            let place = scratch.join(format!("fix-{number}"));
            let out = place.with_extension("json");
            let mut arguments: Vec<&OsStr> = runs.to_vec();
            arguments.extend(["--repairs".as_ref(), OsStr::new("1")]);
            arguments.extend(["--output".as_ref(), out.as_os_str()]);
            arguments.extend(["--".as_ref(), OsStr::new(&first.trace)]);
            process::ask("fix", &arguments, options.time, &place)?;
            let text = fs_err::read_to_string(&out).ok();
            let fixes = text.and_then(|text| serde_json::from_str::<Fixes>(&text).ok());
            let repair = fixes.and_then(|fixes| fixes.repairs.into_iter().next());
            group.repair = repair.map(|repair| repair.steps).unwrap_or_default();
        }
        done(number);
    }
    Ok(())
}
