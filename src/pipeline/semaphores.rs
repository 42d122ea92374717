//! Semaphores that count what is free, and whose units a thread gave back more often than it had taken them.

use model::{EventId, EventKind, EventTrace, ObjectId, ObjectKind};
use std::collections::BTreeMap;

/// How a thread used a semaphore.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    took: bool,
    /// Units that it has.
    has: u64,
    /// The last place where it gave one back that it had.
    gave: Option<EventId>,
    /// Where it gave one back that it had not, and the one before that.
    too_many: Option<(EventId, EventId)>,
}

/// One sentence for each such thread. Where a thread posts without ever waiting, or where several post more than
/// they took, the semaphore tells of something, and nobody posts too often.
pub(super) fn posted_too_often(trace: &EventTrace) -> Vec<String> {
    trace
        .objects
        .iter()
        .filter(|object| matches!(object.kind, ObjectKind::Semaphore { initial } if initial > 0))
        .filter_map(|object| of(trace, object.id))
        .collect()
}

fn of(trace: &EventTrace, semaphore: ObjectId) -> Option<String> {
    let mut uses: BTreeMap<usize, Use> = BTreeMap::new();
    for thread in &trace.threads {
        for &id in &thread.events {
            let of_thread = || thread.id.index();
            match trace.event(id).kind {
                EventKind::SemaphoreWait { object } if object == semaphore => {
                    let own = uses.entry(of_thread()).or_default();
                    (own.took, own.has) = (true, own.has + 1);
                }
                EventKind::SemaphorePost { object } if object == semaphore => {
                    let own = uses.entry(of_thread()).or_default();
                    if own.has > 0 {
                        (own.has, own.gave) = (own.has - 1, Some(id));
                    } else {
                        let before = own.gave?;
                        own.too_many.get_or_insert((before, id));
                    }
                }
                _ => {}
            }
        }
    }
    let mut wrong = uses.values().filter_map(|own| own.too_many);
    let (first, second) = wrong.next().filter(|_| wrong.next().is_none())?;
    let others = uses.values().filter(|own| own.took && own.too_many.is_none());
    if others.count() == 0 {
        return None;
    }
    let place = |id: EventId| {
        let site = trace.event(id).site();
        let file = site.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", site.line)
    };
    let name = trace.subject(trace.event(second)).unwrap_or("a semaphore");
    Some(format!(
        "{} posted `{name}` at {} and again at {}, but had taken it only once: from then on it has a unit too many",
        trace.thread_of(second).name,
        place(first),
        place(second)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    fn told(text: &str) -> Vec<String> {
        posted_too_often(&parse(text).expect("the text is a trace").trace)
    }

    const OTHER: &str = "b: sem-wait s\n b: post s\n";

    #[test]
    fn a_unit_that_is_given_back_twice_is_told() {
        let found = told(&format!(
            "sem s 1\n t0: fork a\n t0: fork b\n a: sem-wait s\n a: post s\n a: post s\n {OTHER}"
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("t0.1 posted `s`"), "{found:?}");
    }

    #[test]
    fn a_semaphore_that_tells_of_something_has_no_unit_too_many() {
        for text in [
            format!("sem s 1\n t0: fork a\n t0: fork b\n a: post s\n {OTHER}"),
            format!("sem s 1\n t0: fork a\n t0: fork b\n a: sem-wait s\n a: post s\n {OTHER}"),
            "sem s 1\n t0: fork a\n a: sem-wait s\n a: post s\n a: post s\n".to_owned(),
        ] {
            assert_eq!(told(&text), Vec::<String>::new(), "{text}");
        }
    }
}
