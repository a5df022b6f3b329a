//! `plan.json` is as its published schema says.

use serde_json::Value;

use crate::support::{MATRICES, Place, matrix};

const SCHEMA: &str = include_str!("../../plan.schema.json");

/// What differs from a schema that uses the words of ours only.
fn differences(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let list = |key: &str| schema[key].as_array().into_iter().flatten();
    let mut found = Vec::new();
    let is_type = match schema["type"].as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some(other) => unreachable!("the schema has the type {other}"),
    };
    let is_constant = schema.get("const").is_none_or(|constant| constant == value);
    let is_listed = schema.get("enum").is_none() || list("enum").any(|one| one == value);
    let mut any = list("anyOf").peekable();
    let is_any = any.peek().is_none() || any.any(|one| differences(one, value, at).is_empty());
    if !(is_type && is_constant && is_listed && is_any) {
        found.push(format!("{at}: {value}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(differences(&schema["items"], item, &format!("{at}/{index}")));
    }
    if schema["type"] == "object" {
        for name in list("required").filter_map(Value::as_str) {
            if value.get(name).is_none() {
                found.push(format!("{at}: lacks {name}"));
            }
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(name) {
                Some(schema) => found.extend(differences(schema, inner, &format!("{at}/{name}"))),
                None => found.push(format!("{at}: has {name}")),
            }
        }
    }
    found
}

#[test]
fn plans_are_as_the_schema_says() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let place = Place::new();
    let tasks = ["--no-compile", "--no-check", "--no-compile --op spmm --cols 8 --dtype f64"];
    for (index, name) in MATRICES.iter().enumerate() {
        let task = tasks[index % tasks.len()];
        place.succeed(&format!("gen {} {task} -o out", matrix(name)));
        let plan = place.json("out/plan.json");
        assert_eq!(differences(&schema, &plan, ""), Vec::<String>::new(), "{name}");
        let mut other = plan;
        other["launch"]["grid"] = "many".into();
        other["arguments"][0]["kind"] = "other".into();
        other.as_object_mut().unwrap().remove("order");
        assert_eq!(differences(&schema, &other, "").len(), 3);
    }
    // More of B than the L2 cache holds, and so in panels.
    let spread = "uniform:120000,130000,4 --op spmm --cols 128 --policy cost --no-compile";
    place.succeed(&format!("gen {spread} -o out"));
    let plan = place.json("out/plan.json");
    assert_eq!(plan["parts"][0]["fields"]["panel"], 32);
    assert_eq!(differences(&schema, &plan, ""), Vec::<String>::new());
}
