//! Numbers as JavaScript writes them (ECMA-262, `Number::toString`), which templates were written for.

use serde_json::Number;

/// `1.0` is `1`, `1e21` is `1e+21`. Whole numbers keep all their digits, also beyond 2⁵³.
pub(super) fn as_javascript(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let Some(float) = number.as_f64() else { return number.to_string() };
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(power) if (-6..21).contains(&power) => format!("{float}"),
        Ok(power) if power > 0 => format!("{digits}e+{power}"),
        _ => format!("{digits}e{exponent}"),
    }
}
