//! docs/reference/ops-yaml.md, the JSON Schema and this repository's ops.yaml, held against the table that the parser reads.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use t2t_spec::fields::{Absent, FIELDS, Field, Merge, SECTIONS};
use t2t_spec::schema::schema;
use t2t_spec::{Profile, Spec};

fn read(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn row(field: &Field) -> String {
    let default = match field.absent {
        Absent::Never(_) => "required".to_owned(),
        Absent::Value(json) => format!("`{json}`"),
        Absent::Words(words) => words.to_owned(),
    };
    let merge = match field.merge {
        Merge::Alone => "—",
        Merge::Replace => "replace",
        Merge::ByKey => "by key",
    };
    let phases: Vec<String> = field.phases.iter().map(|phase| format!("{phase:?}").to_lowercase()).collect();
    let phases = if phases.is_empty() { "—".to_owned() } else { phases.join(", ") };
    format!("| `{}` | {} | {default} | {merge} | {phases} | {} |", field.key, field.kind, field.meaning)
}

#[test]
fn the_docs_list_every_field_and_no_other() {
    let docs = read("docs/reference/ops-yaml.md");
    let (_, fields) = docs.split_once("# The fields").unwrap();
    for section in SECTIONS {
        let (_, rest) = fields.split_once(&format!("\n## {}\n", section.name())).unwrap();
        let part = rest.split("\n## ").next().unwrap();
        let listed: Vec<&str> = part.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = section.fields().map(row).collect();
        assert_eq!(listed, expected, "{}", section.name());
    }
}

#[test]
fn the_schema_has_every_field_and_no_other() {
    let schema = schema();
    for section in SECTIONS {
        let definition = &schema["$defs"][section.name()];
        let listed: BTreeSet<&str> = definition["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = section.fields().map(|field| field.key).collect();
        assert_eq!(listed, expected, "{}", section.name());
        assert_eq!(definition["additionalProperties"], json!(false));
    }
    assert_eq!(schema["$defs"]["file"]["required"], json!(["version", "ops"]));
    assert_eq!(schema["$defs"]["check"]["properties"]["seeds"]["default"], json!(2));
}

#[test]
fn no_key_stands_twice_in_a_section() {
    let keys: BTreeSet<(&str, &str)> = FIELDS.iter().map(|field| (field.section.name(), field.key)).collect();
    assert_eq!(keys.len(), FIELDS.len());
}

#[test]
fn the_ops_of_this_repository_are_declared_and_fit_the_schema() {
    let text = read("ops.yaml");
    let spec = Spec::parse("ops.yaml", text.as_bytes(), None).unwrap();
    let names: Vec<&str> = spec.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["add", "softmax", "mha", "gelu", "layernorm", "matmul"]);
    for op in &spec.ops {
        assert_eq!(op.variants.len(), 4, "{}", op.name);
        assert_eq!(op.variants[0].entry, format!("triton_{}", op.name));
        assert!(op.torch.as_ref().unwrap().as_str().starts_with("torch."));
    }
    let mha = spec.op("mha").unwrap();
    assert_eq!(mha.settings(Profile::Cuda).sizes["large"]["S"], 4096);
    assert!(mha.settings(Profile::Cpu).sizes["large"].values().product::<u64>() < 1 << 16);
}

/// Says where `value` leaves the schema, for the keywords that `t2t schema` uses for structure.
fn misfit(value: &Value, part: &Value, schema: &Value) -> Option<String> {
    if let Some(reference) = part["$ref"].as_str() {
        return misfit(value, schema.pointer(reference.trim_start_matches('#')).unwrap(), schema);
    }
    if let Some(options) = part["anyOf"].as_array() {
        let fits = options.iter().any(|option| misfit(value, option, schema).is_none());
        return (!fits).then(|| format!("{value} is none of {options:?}"));
    }
    let fits = match part["type"].as_str() {
        Some("object") => return object_misfit(value, part, schema),
        Some("array") if value.is_array() => {
            return value.as_array()?.iter().find_map(|item| misfit(item, &part["items"], schema));
        }
        Some("array") => false,
        Some("string") => value.is_string() && part["enum"].as_array().is_none_or(|words| words.contains(value)),
        Some("integer") => value.as_i64() >= part["minimum"].as_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    (!fits).then(|| format!("{value} is no {part}"))
}

fn object_misfit(value: &Value, part: &Value, schema: &Value) -> Option<String> {
    let Some(object) = value.as_object() else { return Some(format!("{value} is no mapping")) };
    let missing =
        part["required"].as_array().into_iter().flatten().find(|key| !object.contains_key(key.as_str().unwrap()));
    let wrong =
        object.iter().find_map(|(key, value)| match (&part["properties"][key], &part["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => Some(format!("unknown key {key}")),
            (Value::Null, others) => misfit(value, others, schema),
            (property, _) => misfit(value, property, schema),
        });
    missing.map(|key| format!("no {key}")).or(wrong)
}

#[test]
fn what_the_parser_accepts_the_schema_accepts() {
    let schema = schema();
    for declared in [
        json!({"version": 1, "ops": {"softmax": {"torch": "F.softmax", "inputs": {"input": ["M", "N"]}, "kwargs": {"dim": -1}}}}),
        json!({"version": 1, "targets": ["nvidia-h200", "sm_90"], "log": {"template": "assets/log_template.md"},
        "defaults": {"variants": ["v1"], "dtypes": ["half"], "precision": "tf32", "check": {"atol": 0.1}, "bench": {"runs": 2, "sizes": {"small": 7}}},
        "profiles": {"cpu": {"dims": {"V": 10}, "dtypes": ["float32"], "check": {"seeds": 1}, "bench": {"rep_ms": 5}}},
        "ops": {"embedding": {
            "torch": "F.embedding",
            "inputs": {"input": {"shape": ["M"], "dtype": "int64", "init": {"randint": [0, "V"]}},
                "weight": {"shape": ["V", 64], "init": {"normal": [0, 1]}, "requires_grad": true, "layout": "transposed"}},
            "kwargs": {"max_norm": null, "sizes": [1, {"a": "V"}]}, "dims": {"V": 1000}, "dtypes": ["float32", "float16"],
            "entry": "lookup", "cases": "kernels/embedding/cases.py", "mutates": ["weight"], "overwrites": [], "backward": true, "broadcast": false,
            "deterministic": false, "precision": "ieee", "log": {"template": "assets/korean.md"},
            "variants": ["v1", {"name": "v2", "file": "second.py", "lang": "triton", "entry": "lookup2", "lanes": ["cuda"], "deterministic": true}],
            "check": {"rtol": 0.1, "tolerances": {"float16": [0.1, 0.2]}, "sizes": {"odd": [7], "even": {"M": 8}}, "max_retries": 0, "timeout": "500ms"},
            "bench": {"sizes": {"small": {"M": 16}, "large": [64]}, "warmup_ms": 0, "timeout": "2m",
                "baselines": ["torch", "torch.compile:max-autotune", "lib/a.py::f", {"name": "gems", "function": "flag_gems.ops.embedding"}]},
            "profiles": {"cpu": {"bench": {"sizes": {"small": 4}}}}
        }}}),
    ] {
        assert_eq!(misfit(&declared, &json!({"$ref": "#/$defs/file"}), &schema), None);
        // JSON is YAML.
        let text = serde_json::to_string_pretty(&declared).unwrap();
        let problems =
            Spec::parse("ops.yaml", text.as_bytes(), None).map_err(|problems| t2t_model::problem::render(&problems));
        assert!(problems.is_ok(), "{}", problems.unwrap_err());
    }
}

#[test]
fn the_test_schema_checker_finds_misfits() {
    let schema = schema();
    let root = json!({"$ref": "#/$defs/file"});
    for declared in [
        json!({"ops": {}}),
        json!({"version": 1, "ops": {"add": {"torch": "add", "inputs": {"input": [0]}}}}),
        json!({"version": 1, "ops": {"add": {"torch": "add", "inputs": {"input": []}, "inptus": 1}}}),
        json!({"version": 1, "ops": {"add": {"torch": "add", "inputs": {"input": []}, "precision": "tf16"}}}),
    ] {
        assert!(misfit(&declared, &root, &schema).is_some(), "{declared}");
    }
}
