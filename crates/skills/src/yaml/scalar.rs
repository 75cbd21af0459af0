//! The types of plain scalars: the core schema of YAML 1.2 (section 10.3.2).

use crate::node::Type;

/// Longest digits that are looked at; longer numbers stay text like all that an `i64` cannot hold.
const MAX_DIGITS: usize = 24;

/// The type of a plain scalar. Dates, `yes`, `0b1`, `1_000`, `.inf` and numbers beyond an `i64` or a finite `f64` are
/// text, since JSON has no other word for them.
pub(crate) fn core_type(text: &str) -> Type {
    match text.as_bytes().first() {
        None => Type::Null,
        Some(b'~' | b'n' | b'N') => match text {
            "~" | "null" | "Null" | "NULL" => Type::Null,
            _ => Type::Text,
        },
        Some(b't' | b'T') => match text {
            "true" | "True" | "TRUE" => Type::Bool(true),
            _ => Type::Text,
        },
        Some(b'f' | b'F') => match text {
            "false" | "False" | "FALSE" => Type::Bool(false),
            _ => Type::Text,
        },
        Some(b'+' | b'-' | b'.' | b'0'..=b'9') => number(text),
        Some(_) => Type::Text,
    }
}

fn number(text: &str) -> Type {
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse() {
            Ok(value) if text.len() <= MAX_DIGITS => Type::Integer(value),
            _ => Type::Text,
        };
    }
    if !is_float(unsigned) {
        return Type::Text;
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Type::Float(value),
        _ => Type::Text,
    }
}

fn radix(digits: &str, radix: u32) -> Type {
    if digits.len() > MAX_DIGITS || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
        return Type::Text;
    }
    i64::from_str_radix(digits, radix).map_or(Type::Text, Type::Integer)
}

/// `( "." digits | digits ( "." digits? )? ) ( [eE] sign? digits )?`
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let right_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let right_exponent = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !unsigned.is_empty() && digits(unsigned)
    });
    right_mantissa && right_exponent
}
