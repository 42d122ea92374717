//! φmo: program order, as far as the memory model keeps it.

use crate::context::{Builder, Context};
use crate::models::MemoryModel;
use crate::system::{ConstraintKind, Term};

/// One constraint per pair of the model's chain.
pub(crate) fn encode(context: &Context<'_>, model: MemoryModel, builder: &mut Builder) {
    for thread in &context.trace.threads {
        for (a, b) in model.preserved(thread) {
            builder.add(ConstraintKind::ProgramOrder, [a, b], Term::Before(a, b));
        }
    }
}
