//! Boolean variables and their literals.

/// A boolean variable of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Variable(pub(super) u32);

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Literal(u32);

impl Variable {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// The literal that holds when the variable has this value.
    pub(super) fn literal(self, value: bool) -> Literal {
        Literal(self.0 << 1 | u32::from(!value))
    }
}

impl Literal {
    pub(super) fn variable(self) -> Variable {
        Variable(self.0 >> 1)
    }

    /// The variable's value under which the literal holds.
    pub(super) fn is_positive(self) -> bool {
        self.0 & 1 == 0
    }

    /// An index for tables by literal.
    pub(super) fn code(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Not for Literal {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}
