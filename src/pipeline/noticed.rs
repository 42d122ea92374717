//! Runs that hung and were ended by something of their own, which is what the recording tells of their failure.

use model::FailureKind;
use symex::{EndedBy, RecordedFailure, RecordedFailureKind};

/// What to say of an answer that is about the hang.
pub(super) fn note(ended: &EndedBy) -> String {
    let EndedBy { kind, message, thread, site } = ended;
    let said = match (kind, message.as_str()) {
        (FailureKind::Exit, "") => "an exit status that is not 0".to_owned(),
        (kind, "") => format!("`{}`", kind.name()),
        (kind, message) => format!("`{}` ({message})", kind.name()),
    };
    let at = match site.line {
        0 => String::new(),
        line => format!(" at {}:{line}", site.file.rsplit('/').next().unwrap_or_default()),
    };
    format!(
        "the run was ended by {said} of {thread}{at}, when it hung already: why it hung is explained here"
    )
}

/// What to say where nobody knows which thread got a signal, and it ended no hang either.
pub(super) fn of_unknown(failure: &RecordedFailure) -> Option<String> {
    let RecordedFailureKind::Signal { signo, .. } = failure.kind else { return None };
    (failure.thread_serial == 0).then(|| {
        format!(
            "no recorded thread is known to have got signal {signo}: another process may have sent it, or a thread may have \
             crashed that was not recorded. What is shown as the failure is where the initial thread was by then"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Site;

    #[test]
    fn what_ended_the_run_is_told() {
        let site = Site { file: "src/dog.c".into(), line: 7, ..Site::default() };
        let thread = "t0.3".to_owned();
        let ended = EndedBy { kind: FailureKind::Abort, message: String::new(), thread, site };
        assert!(note(&ended).starts_with("the run was ended by `abort` of t0.3 at dog.c:7, when"));
        let message = "no progress".to_owned();
        let ended = EndedBy { message, site: Site::default(), ..ended };
        assert!(
            note(&ended).starts_with("the run was ended by `abort` (no progress) of t0.3, when")
        );
    }
}
