//! Expressions of the text form: C's operators, all signed.

use model::{BinOp, CmpOp, ExprId, ExprPool};

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Bin(BinOp),
    Cmp(CmpOp),
    /// Operands swapped.
    Swapped(CmpOp),
    NotEqual,
    /// On truth values.
    And,
    Or,
}

/// A parsed expression whose literals have no width yet.
#[derive(Clone, Debug)]
enum Tree {
    Literal(i128),
    Known(ExprId),
    Negated(Box<Tree>),
    Not(Box<Tree>),
    Node(Op, Box<Tree>, Box<Tree>),
    /// `condition ? then : otherwise`.
    Choice(Box<[Tree; 3]>),
}

/// Longest first, so that `<=` is not read as `<`.
const OPERATORS: &[(&str, u8, Op)] = &[
    ("||", 1, Op::Or),
    ("&&", 2, Op::And),
    ("==", 3, Op::Cmp(CmpOp::Eq)),
    ("!=", 3, Op::NotEqual),
    ("<=", 4, Op::Cmp(CmpOp::SLe)),
    (">=", 4, Op::Swapped(CmpOp::SLe)),
    ("<", 4, Op::Cmp(CmpOp::SLt)),
    (">", 4, Op::Swapped(CmpOp::SLt)),
    ("+", 5, Op::Bin(BinOp::Add)),
    ("-", 5, Op::Bin(BinOp::Sub)),
    ("*", 6, Op::Bin(BinOp::Mul)),
    ("/", 6, Op::Bin(BinOp::SDiv)),
    ("%", 6, Op::Bin(BinOp::SRem)),
    ("&", 6, Op::Bin(BinOp::And)),
    ("|", 6, Op::Bin(BinOp::Or)),
    ("^", 6, Op::Bin(BinOp::Xor)),
];

struct Parser<'a> {
    rest: &'a str,
    lookup: &'a dyn Fn(&str) -> Option<ExprId>,
}

/// Parses a whole text as one expression. `width` is that of the result; literals take the width
/// of what they stand beside.
pub(super) fn parse(
    pool: &mut ExprPool,
    text: &str,
    width: u32,
    lookup: &dyn Fn(&str) -> Option<ExprId>,
) -> Result<ExprId, String> {
    let mut parser = Parser { rest: text.trim(), lookup };
    let tree = parser.choice()?;
    if !parser.rest.is_empty() {
        return Err(format!("unknown operator at `{}`", parser.rest));
    }
    let id = build(pool, &tree, width)?;
    if pool.width(id) == width {
        Ok(id)
    } else {
        Err(format!("`{text}` has {} bits where {width} are needed", pool.width(id)))
    }
}

impl Parser<'_> {
    fn choice(&mut self) -> Result<Tree, String> {
        let condition = self.operators(0)?;
        if !self.rest.starts_with('?') {
            return Ok(condition);
        }
        self.eat(1);
        let then = self.choice()?;
        if !self.rest.starts_with(':') {
            return Err(format!("`:` expected at `{}`", self.rest));
        }
        self.eat(1);
        Ok(Tree::Choice(Box::new([condition, then, self.choice()?])))
    }

    fn operators(&mut self, least: u8) -> Result<Tree, String> {
        let mut left = self.operand()?;
        while let Some(&(sign, level, op)) = self.operator(least) {
            self.eat(sign.len());
            let right = self.operators(level + 1)?;
            left = Tree::Node(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operator(&self, least: u8) -> Option<&'static (&'static str, u8, Op)> {
        let found = OPERATORS.iter().find(|(sign, ..)| self.rest.starts_with(sign))?;
        (found.1 >= least).then_some(found)
    }

    fn operand(&mut self) -> Result<Tree, String> {
        if self.rest.starts_with('-') {
            self.eat(1);
            return Ok(Tree::Negated(Box::new(self.operand()?)));
        }
        if self.rest.starts_with('!') {
            self.eat(1);
            return Ok(Tree::Not(Box::new(self.operand()?)));
        }
        if self.rest.starts_with('(') {
            self.eat(1);
            let inner = self.choice()?;
            if !self.rest.starts_with(')') {
                return Err(format!("`)` expected at `{}`", self.rest));
            }
            self.eat(1);
            return Ok(inner);
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (word, _) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(format!("an operand is expected at `{}`", self.rest));
        }
        self.eat(word.len());
        if let Ok(value) = word.parse::<i128>() {
            return Ok(Tree::Literal(value));
        }
        (self.lookup)(word).map(Tree::Known).ok_or_else(|| format!("unknown name `{word}`"))
    }

    fn eat(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }
}

/// The width of a tree's operands, unless all of them are literals.
fn width_of(pool: &ExprPool, tree: &Tree) -> Option<u32> {
    match tree {
        Tree::Literal(_) => None,
        Tree::Known(id) => Some(pool.width(*id)),
        Tree::Negated(inner) => width_of(pool, inner),
        Tree::Not(_) => Some(1),
        Tree::Node(Op::Bin(_), a, b) => width_of(pool, a).or_else(|| width_of(pool, b)),
        Tree::Node(..) => Some(1),
        Tree::Choice(parts) => width_of(pool, &parts[1]).or_else(|| width_of(pool, &parts[2])),
    }
}

fn build(pool: &mut ExprPool, tree: &Tree, width: u32) -> Result<ExprId, String> {
    match tree {
        Tree::Literal(value) => Ok(pool.constant(width, *value as u128)),
        Tree::Known(id) => Ok(*id),
        Tree::Negated(inner) => {
            let inner = build(pool, inner, width)?;
            let zero = pool.constant(pool.width(inner), 0);
            Ok(pool.bin(BinOp::Sub, zero, inner))
        }
        Tree::Not(inner) => {
            let inner = build(pool, inner, 1)?;
            if pool.width(inner) == 1 {
                Ok(pool.not(inner))
            } else {
                Err("`!` needs a truth value".into())
            }
        }
        Tree::Node(op, a, b) => node(pool, *op, a, b, width),
        Tree::Choice(parts) => {
            let [condition, then, otherwise] = &**parts;
            let condition = build(pool, condition, 1)?;
            let width = width_of(pool, tree).unwrap_or(width);
            let (then, otherwise) = (build(pool, then, width)?, build(pool, otherwise, width)?);
            let widths = [condition, then, otherwise].map(|part| pool.width(part));
            if widths != [1, width, width] {
                return Err(format!("`?:` of {} ? {} : {} bits", widths[0], widths[1], widths[2]));
            }
            Ok(pool.ite(condition, then, otherwise))
        }
    }
}

fn node(pool: &mut ExprPool, op: Op, a: &Tree, b: &Tree, width: u32) -> Result<ExprId, String> {
    let default = match op {
        Op::Bin(_) => width,
        Op::And | Op::Or => 1,
        Op::Cmp(_) | Op::Swapped(_) | Op::NotEqual => 32,
    };
    let operand = width_of(pool, a).or_else(|| width_of(pool, b)).unwrap_or(default);
    let (a, b) = (build(pool, a, operand)?, build(pool, b, operand)?);
    if pool.width(a) != pool.width(b) {
        return Err(format!("operands of {} and {} bits", pool.width(a), pool.width(b)));
    }
    Ok(match op {
        Op::Bin(op) => pool.bin(op, a, b),
        Op::Cmp(op) => pool.cmp(op, a, b),
        Op::Swapped(op) => pool.cmp(op, b, a),
        Op::NotEqual => {
            let equal = pool.eq(a, b);
            pool.not(equal)
        }
        Op::And => pool.and(a, b),
        Op::Or => pool.or(a, b),
    })
}
