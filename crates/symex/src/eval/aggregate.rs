//! Structs, arrays and vectors as values.

use crate::report::GapKind;
use crate::value::{self, Scalar, Value};
use model::{CmpOp, ExprPool};
use std::rc::Rc;

pub(super) fn extract_value(a: &Value, path: &[u32]) -> Result<Value, GapKind> {
    let mut value = a;
    for &index in path {
        let elements = value.elements().ok_or(GapKind::Width)?;
        value = elements.get(index as usize).ok_or(GapKind::Width)?;
    }
    Ok(value.clone())
}

pub(super) fn insert_value(a: &Value, b: Value, path: &[u32]) -> Result<Value, GapKind> {
    let Some((&first, rest)) = path.split_first() else { return Ok(b) };
    let mut elements = Rc::clone(a.elements().ok_or(GapKind::Width)?);
    let slot = Rc::make_mut(&mut elements).get_mut(first as usize).ok_or(GapKind::Width)?;
    *slot = insert_value(slot, b, rest)?;
    Ok(Value::Aggregate(elements))
}

pub(super) fn extract_element(
    pool: &mut ExprPool,
    a: &Value,
    index: &Value,
) -> Result<Value, GapKind> {
    let elements = a.elements().ok_or(GapKind::Width)?;
    let index = index.scalar().ok_or(GapKind::Width)?;
    if let Some(i) = index.as_const() {
        return elements.get(i as usize).cloned().ok_or(GapKind::Width);
    }
    // A symbolic index chooses among all lanes.
    let mut result = elements.last().and_then(Value::scalar).ok_or(GapKind::Width)?;
    for (i, element) in elements.iter().enumerate().rev().skip(1) {
        let element = element.scalar().ok_or(GapKind::Width)?;
        let hit = value::cmp(pool, CmpOp::Eq, index, Scalar::constant(index.width, i as u128));
        result = value::ite(pool, hit, element, result);
    }
    Ok(result.into())
}

pub(super) fn insert_element(
    pool: &mut ExprPool,
    a: &Value,
    b: Value,
    index: &Value,
) -> Result<Value, GapKind> {
    let mut elements = Rc::clone(a.elements().ok_or(GapKind::Width)?);
    let index = index.scalar().ok_or(GapKind::Width)?;
    let lanes = Rc::make_mut(&mut elements);
    if let Some(i) = index.as_const() {
        *lanes.get_mut(i as usize).ok_or(GapKind::Width)? = b;
        return Ok(Value::Aggregate(elements));
    }
    let b = b.scalar().ok_or(GapKind::Width)?;
    for (i, lane) in lanes.iter_mut().enumerate() {
        let old = lane.scalar().ok_or(GapKind::Width)?;
        let hit = value::cmp(pool, CmpOp::Eq, index, Scalar::constant(index.width, i as u128));
        *lane = value::ite(pool, hit, b, old).into();
    }
    Ok(Value::Aggregate(elements))
}

pub(super) fn shuffle(a: &Value, b: &Value, mask: &[Option<u32>]) -> Result<Value, GapKind> {
    let first = a.elements().ok_or(GapKind::Width)?;
    let second = b.elements().map(|elements| elements.as_slice()).unwrap_or_default();
    let lane = |index: &Option<u32>| {
        // An undefined lane may hold anything; the first lane will do.
        let index = index.unwrap_or(0) as usize;
        first.iter().chain(second).nth(index).cloned().ok_or(GapKind::Width)
    };
    let lanes: Result<Vec<Value>, GapKind> = mask.iter().map(lane).collect();
    Ok(Value::aggregate(lanes?))
}
