//! Constants as PTX writes them, and others in their place.

/// A constant in an operand.
pub(super) struct Literal<'p> {
    /// What stands before it and behind it in the operand.
    around: [&'p str; 2],
    value: Value,
    /// Whether it counts bytes of elements of at least four.
    is_offset: bool,
}

#[derive(Clone, Copy)]
enum Value {
    Whole(i64),
    Single(f32),
    Double(f64),
}

impl<'p> Literal<'p> {
    /// The constant that an operand is, or has in brackets.
    pub(super) fn in_operand(operand: &'p str, root: &str) -> Option<Self> {
        if let Some(inside) = operand.strip_prefix('[') {
            let plus = inside.find('+')? + 2;
            let (number, behind) = operand.get(plus..)?.split_once(']')?;
            let value = Value::Whole(number.parse().ok()?);
            let before = operand.get(..plus)?;
            let around = [before, operand.get(operand.len() - behind.len() - 1..)?];
            return Some(Self { around, value, is_offset: true });
        }
        let value = value_of(operand)?;
        // Lanes that take part, and the segments of shuffles, are not what gives wrong numbers.
        let is_fixed = matches!(value, Value::Whole(-1 | 31));
        if is_fixed && matches!(root, "shfl" | "vote" | "match" | "redux" | "bar" | "activemask") {
            return None;
        }
        let is_offset = matches!(value, Value::Whole(whole) if whole % 4 == 0 && whole.abs() > 4);
        Some(Self { around: ["", ""], value, is_offset })
    }

    pub(super) fn whole(&self) -> Option<i64> {
        match self.value {
            Value::Whole(whole) => Some(whole),
            _ => None,
        }
    }

    /// Operands with other constants, and what was changed to what.
    pub(super) fn others(&self) -> Vec<(String, String)> {
        let [before, behind] = self.around;
        let others = match self.value {
            Value::Whole(whole) => whole_others(whole, self.is_offset)
                .into_iter()
                .map(|other| (other.to_string(), format!("{other} instead of {whole}")))
                .collect::<Vec<_>>(),
            Value::Single(single) => real_others(single.into())
                .map(|other| {
                    let bits = (other as f32).to_bits();
                    (format!("0f{bits:08X}"), format!("{other} instead of {single}"))
                })
                .to_vec(),
            Value::Double(double) => real_others(double)
                .map(|other| {
                    let bits = other.to_bits();
                    (format!("0d{bits:016X}"), format!("{other} instead of {double}"))
                })
                .to_vec(),
        };
        others.into_iter().map(|(text, words)| (format!("{before}{text}{behind}"), words)).collect()
    }
}

fn value_of(text: &str) -> Option<Value> {
    if let Some(bits) = text.strip_prefix("0f") {
        return u32::from_str_radix(bits, 16).ok().map(f32::from_bits).map(Value::Single);
    }
    if let Some(bits) = text.strip_prefix("0d") {
        return u64::from_str_radix(bits, 16).ok().map(f64::from_bits).map(Value::Double);
    }
    if let Some(bits) = text.strip_prefix("0x") {
        return i64::from_str_radix(bits, 16).ok().map(Value::Whole);
    }
    text.parse().ok().map(Value::Whole)
}

fn whole_others(whole: i64, is_offset: bool) -> Vec<i64> {
    let mut others = vec![whole.wrapping_add(1), whole.wrapping_sub(1)];
    if whole.abs() > 1 {
        others.push(whole.wrapping_mul(2));
        others.push(whole / 2);
        // A mask of twice as many bits, or twice the sum of two.
        others.extend((whole & whole.wrapping_add(1) == 0).then(|| whole.wrapping_mul(2) + 1));
    }
    if is_offset {
        others.extend([4, -4, 8, -8].map(|bytes| whole.wrapping_add(bytes)));
        // Elements that were taken for bytes, or the other way round.
        others.extend([whole.wrapping_mul(4), whole / 4]);
    }
    others.retain(|&other| other != whole);
    others
}

fn real_others(real: f64) -> [f64; 5] {
    [0.0, 1.0, 2.0 * real, real / 2.0, -real]
}

/// A variable with what it holds at first.
pub(super) struct Table<'p> {
    pub(super) name: &'p str,
    /// What stands before the numbers.
    head: &'p str,
    numbers: Vec<u64>,
    /// Numbers of an element, of 8 bits each where there are several.
    each: usize,
    is_real: bool,
}

/// The table that a line of PTX outside of all functions defines.
pub(super) fn table_of(line: &str) -> Option<Table<'_>> {
    let (head, rest) = line.split_once('{')?;
    let is_variable = [".const", ".global"].iter().any(|of| head.contains(of));
    let (list, _) = rest.rsplit_once('}').filter(|_| is_variable && head.contains('='))?;
    let (declared, _) = head.split_once('[')?;
    let name = declared.split_whitespace().next_back()?;
    let words: Vec<&str> = declared.split_whitespace().collect();
    let align = words.iter().position(|&word| word == ".align");
    let align = align.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(1);
    let numbers = list.split(',').map(|number| match value_of(number.trim()) {
        Some(Value::Whole(whole)) => Some(whole as u64),
        Some(Value::Single(single)) => Some(single.to_bits().into()),
        _ => None,
    });
    let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
    let each = if words.contains(&".b8") { align } else { 1 };
    let is_real = words.contains(&".f32") || each == 4;
    (each <= 4).then_some(Table { name, head, numbers, each, is_real })
}

/// Of each element the lines with another one in its place, with what was changed to what.
pub(super) fn elements_of<'t>(
    table: &'t Table<'_>,
) -> impl Iterator<Item = (usize, Vec<(String, String)>)> + 't {
    let each = table.each.max(1);
    let count = table.numbers.len().div_ceil(each);
    (0..count).map(move |element| {
        let bytes: Vec<u64> = (0..each)
            .map(|byte| table.numbers.get(element * each + byte).copied().unwrap_or(0))
            .collect();
        let whole = match each {
            1 => bytes.first().copied().unwrap_or(0),
            _ => bytes.iter().rev().fold(0, |whole, byte| whole << 8 | byte & 0xFF),
        };
        let signed = i64::from(whole as u32 as i32);
        let single = f32::from_bits(whole as u32);
        let looks_real = table.is_real && single.is_normal() && single.abs() > 1e-6;
        let others: Vec<(u64, String)> = match looks_real && single.abs() < 1e6 {
            true => real_others(single.into())
                .into_iter()
                .map(|other| {
                    let bits = (other as f32).to_bits();
                    (bits.into(), format!("{other} instead of {single}"))
                })
                .collect(),
            false => whole_others(signed, false)
                .into_iter()
                .map(|other| ((other as u32).into(), format!("{other} instead of {signed}")))
                .collect(),
        };
        let line = |(value, words): (u64, String)| {
            let mut numbers = table.numbers.clone();
            numbers.resize(count * each, 0);
            for byte in 0..each {
                if let Some(place) = numbers.get_mut(element * each + byte) {
                    *place = if each == 1 { value } else { value >> (8 * byte) & 0xFF };
                }
            }
            let list: Vec<String> = numbers.iter().map(u64::to_string).collect();
            (format!("{}{{{}}};", table.head, list.join(", ")), words)
        };
        (element, others.into_iter().map(line).collect())
    })
}
