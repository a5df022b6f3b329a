//! Comparisons, operations and conditions of PTX, and others in their place.

use super::{Literal, Mutant, Written, changed};

/// Comparisons and operations in the place of others.
pub(super) fn with_operations(code: &[Written<'_>], place: &[usize]) -> Vec<Mutant> {
    const OTHERS: [(&str, &str, &str); 39] = [
        ("setp", "lt", "le"),
        ("setp", "le", "lt"),
        ("setp", "gt", "ge"),
        ("setp", "ge", "gt"),
        ("setp", "lo", "ls"),
        ("setp", "ls", "lo"),
        ("setp", "hi", "hs"),
        ("setp", "hs", "hi"),
        ("setp", "eq", "ne"),
        ("setp", "ne", "eq"),
        ("setp", "lt", "ge"),
        ("setp", "ge", "lt"),
        ("setp", "le", "gt"),
        ("setp", "gt", "le"),
        ("setp", "le", "eq"),
        ("setp", "ge", "eq"),
        ("setp", "lt", "ne"),
        ("setp", "gt", "ne"),
        ("setp", "eq", "le"),
        ("setp", "eq", "ge"),
        ("setp", "ne", "lt"),
        ("setp", "ne", "gt"),
        ("setp", "and", "or"),
        ("setp", "or", "and"),
        ("add", "add", "sub"),
        ("sub", "sub", "add"),
        ("and", "and", "or"),
        ("or", "or", "and"),
        ("xor", "xor", "and"),
        ("and", "and", "xor"),
        ("min", "min", "max"),
        ("max", "max", "min"),
        ("max", "max", "add"),
        ("min", "min", "add"),
        ("shfl", "down", "up"),
        ("shfl", "up", "down"),
        ("shfl", "bfly", "down"),
        ("vote", "any", "all"),
        ("vote", "all", "any"),
    ];
    let Some(first) = place.first().and_then(|&number| code.get(number)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let others = OTHERS.iter().filter(|(root, ..)| *root == first.root());
    for &(_, from, to) in others {
        let new = |_: usize, at: &Written<'_>| {
            let mut parts: Vec<&str> = at.opcode.split('.').collect();
            let part = parts.iter_mut().find(|part| **part == from)?;
            *part = to;
            Some(at.text(&parts.join("."), &at.owned()))
        };
        found.extend(changed(code, place, &format!("{to} instead of {from}"), new));
    }
    if first.root() == "and" {
        found.extend(with_other_bits(code, place));
    }
    found.extend(with_fewer_conditions(code, place));
    found.extend(["add", "sub"].into_iter().filter_map(|by| with_bound_beside(code, place, by)));
    found.extend(rounded_up(code, place));
    found.extend(with_other_sign(code, place));
    if matches!(first.root(), "selp" | "sub" | "shl" | "shr" | "div" | "rem") {
        let new = |_: usize, at: &Written<'_>| {
            let mut operands = at.owned();
            (operands.len() > 2).then(|| operands.swap(1, 2))?;
            Some(at.text(at.opcode, &operands))
        };
        found.extend(changed(code, place, "its operands the other way round", new));
    }
    found
}

/// Bits further up in the place of the lowest ones, and a lowest bit that is turned round, as
/// parities are.
fn with_other_bits(code: &[Written<'_>], place: &[usize]) -> Vec<Mutant> {
    let mask = |at: &Written<'_>| {
        let mask = Literal::in_operand(at.operands.get(2)?, "and")?.whole()?;
        (at.opcode == "and.b32" && mask > 0 && mask & (mask + 1) == 0).then_some(mask)
    };
    let further = [1, 2, 3].map(|by| {
        changed(code, place, &format!("the bits {by} further up"), |_, at| {
            let (bits, operands) = (mask(at)?.count_ones(), at.owned());
            let [to, from, _] = operands.as_slice() else { return None };
            let new = [to.clone(), from.clone(), by.to_string(), bits.to_string()];
            Some(at.text("bfe.u32", &new))
        })
    });
    let turned = changed(code, place, "the other parity", |_, at| {
        let to = (*at.operands.first().filter(|_| mask(at) == Some(1))?).to_owned();
        let flip = at.text("xor.b32", &[to.clone(), to, "1".to_owned()]);
        Some(format!("{} {flip}", at.text(at.opcode, &at.owned())))
    });
    further.into_iter().chain([turned]).flatten().collect()
}

/// One of two conditions alone, and a branch that is never taken, or always.
fn with_fewer_conditions(code: &[Written<'_>], place: &[usize]) -> Vec<Mutant> {
    let alone = |operand: usize| {
        changed(code, place, "one of two conditions alone", move |_, at| {
            let is_of_two = matches!(at.opcode, "and.pred" | "or.pred");
            let (to, own) = (at.operands.first()?, at.operands.get(operand)?);
            is_of_two.then(|| at.text("mov.pred", &[(*to).to_owned(), (*own).to_owned()]))
        })
    };
    let is_branch = |at: &Written<'_>| at.root() == "bra" && !at.guard.is_empty();
    let never = changed(code, place, "a branch that is never taken", |_, at| {
        is_branch(at).then(String::new)
    });
    let always = changed(code, place, "a branch that is always taken", |_, at| {
        is_branch(at).then(|| format!("{} {};", at.opcode, at.operands.join(", ")))
    });
    [alone(1), alone(2), never, always].into_iter().flatten().collect()
}

/// Bits of an opcode's last type, if that is of whole numbers.
fn bits_of(opcode: &str) -> Option<u32> {
    let kind = opcode.rsplit('.').next()?;
    let bits = kind.strip_prefix(['s', 'u'])?.parse().ok()?;
    matches!(bits, 32 | 64).then_some(bits)
}

/// What is compared with, one more or one less, where that is no constant.
fn with_bound_beside(code: &[Written<'_>], place: &[usize], by: &str) -> Option<Mutant> {
    let words = if by == "add" { "one more" } else { "one less" };
    changed(code, place, &format!("{words} to compare with"), |_, at| {
        let bits = bits_of(at.opcode).filter(|_| at.root() == "setp")?;
        let last = at.operands.len().checked_sub(1)?;
        let with = at.operands.get(last).filter(|with| with.starts_with('%'))?;
        let compared = at.with_operand(last, "%beside".to_owned());
        Some(format!("{{ .reg .b{bits} %beside; {by}.s{bits} %beside, {with}, 1; {compared} }}"))
    })
}

/// A quotient that is rounded up.
fn rounded_up(code: &[Written<'_>], place: &[usize]) -> Option<Mutant> {
    changed(code, place, "a quotient that is rounded up", |_, at| {
        let bits = bits_of(at.opcode)?;
        let [_, from, by] = at.operands.as_slice() else { return None };
        let less_one = match at.root() {
            "div" => format!("add.s{bits} %up, {from}, {by}; sub.s{bits} %up, %up, 1;"),
            "shr" => {
                let shift = Literal::in_operand(by, "shr")?.whole()?;
                let less_one = (1_i64 << (1..31).contains(&shift).then_some(shift)?) - 1;
                format!("add.s{bits} %up, {from}, {less_one};")
            }
            _ => return None,
        };
        let quotient = at.with_operand(1, "%up".to_owned());
        Some(format!("{{ .reg .b{bits} %up; {less_one} {quotient} }}"))
    })
}

/// Numbers with a sign in the place of those without, and the other way round, where bits are
/// added in front.
fn with_other_sign(code: &[Written<'_>], place: &[usize]) -> Option<Mutant> {
    changed(code, place, "the other sign of numbers", |_, at| {
        let narrow = at.root() == "ld" && (at.opcode.ends_with('8') || at.opcode.ends_with("16"));
        if !(narrow || matches!(at.root(), "cvt" | "shr")) {
            return None;
        }
        let turned = |part: &str| {
            let other = match part.split_at_checked(1)? {
                ("s", bits) => format!("u{bits}"),
                ("u", bits) => format!("s{bits}"),
                _ => return None,
            };
            other.get(1..)?.parse::<u32>().ok()?;
            Some(other)
        };
        let parts = at.opcode.split('.').map(|part| turned(part).unwrap_or_else(|| part.into()));
        let opcode = parts.collect::<Vec<String>>().join(".");
        (opcode != at.opcode).then(|| at.text(&opcode, &at.owned()))
    })
}
