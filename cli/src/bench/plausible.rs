//! Whether the numbers of a results file can have been measured: a report of others would overflow.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Larger than anything that is measured or counted, in whatever unit.
const MOST: f64 = 1e15;
/// Smaller than anything but 0.
const LEAST: f64 = 1e-30;
/// Keys of what is never 0: it is divided by, or its logarithm taken.
const NEVER_ZERO: [&str; 3] = ["seconds", "ratio", "gflops"];

/// Reads a document only to look at its numbers.
///
/// # Errors
/// Names the line and column of a number that nobody can have measured.
pub(super) fn check(text: &[u8]) -> serde_json::Result<()> {
    let mut document = serde_json::Deserializer::from_slice(text);
    Numbers { may_be_zero: true }.deserialize(&mut document)
}

#[derive(Clone, Copy)]
struct Numbers {
    may_be_zero: bool,
}

impl Numbers {
    fn check<E: Error>(self, number: f64) -> Result<(), E> {
        let is_measured = (LEAST..=MOST).contains(&number) || (number == 0.0 && self.may_be_zero);
        if is_measured {
            Ok(())
        } else {
            Err(E::custom(format_args!("{number:?} is no number that can have been measured")))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Numbers {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Numbers {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.check(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.check(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.check(number as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            let may_be_zero = !NEVER_ZERO.contains(&key.as_str());
            object.next_value_seed(Self { may_be_zero })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_nobody_measures_are_named_by_their_place() {
        check(br#"{"a": [1, 0, 2.5e-6, null, true, "1e308", {"seconds": 3e-6}]}"#).unwrap();
        for (text, says) in [
            ("{\"a\":\n [1, 1e308]}", "1e308 is no number that can have been measured at line 2"),
            ("{\"a\": -1}", "-1.0 is no number"),
            ("{\"a\": 1e-300}", "1e-300 is no number"),
            ("{\"a\": 18446744073709551615}", "1.8446744073709552e19 is no number"),
            ("{\"best\": {\"ratio\": 0}}", "0.0 is no number"),
            ("{\"ratio\": 1e999}", "number out of range"),
        ] {
            let error = check(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
