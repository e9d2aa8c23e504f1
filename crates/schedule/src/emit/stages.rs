//! Stages of the vector processor, as schedules write them.

use crate::front::{Arithmetic, Quantisation};
use serde_json::{Map, Value, json};

/// Stages of the vector processor: real numbers of the operands, and how the result is stored.
pub(super) fn stages(
    taken: &[Quantisation],
    own: Quantisation,
    combined: Option<Arithmetic>,
) -> Value {
    let mut before = Map::new();
    for (operand, letter) in taken.iter().zip(["a", "b"]) {
        before.insert(format!("requan_scale_{letter}"), json!(operand.scale));
        before.insert(
            format!("requan_zp_{letter}"),
            json!(-operand.zero * operand.scale),
        );
    }
    let mut modules = json!({ "pre_cal": before });
    match combined {
        Some(Arithmetic::Add) => {
            modules["fp32_sum_sub_group0"] = json!({ "sumsub_group_mode": "add" });
        }
        Some(Arithmetic::Subtract) => {
            modules["fp32_sum_sub_group0"] = json!({ "sumsub_group_mode": "sub" });
        }
        _ => {}
    }
    modules["post_cal"] = json!({ "mul_k": 1.0 / own.scale, "sum_b": own.zero });
    modules
}
