//! The schema of the boundary and the Python types of the harness are those of the types. `T2T_WRITE_SCHEMA=1 cargo test -p t2t-protocol` writes both anew.
#![expect(clippy::disallowed_methods, reason = "it reads and writes two files of the repository")]

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use t2t_protocol::read;
use t2t_protocol::schema::{self, CalibrateRequest, JudgeRequest, SampleRequest};
use t2t_protocol::{
    Analysis, Arguments, Baseline, Bench, Calibration, CandidateEnd, Common, Cost, EndKind, Evidence, Failure, Lane,
    Launches, More, OfBench, OfCheck, Part, Protocol, Resources, Taken, ToJudge, ToSample, TritonCache, Tune, Verdict,
};

fn holds(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if env::var_os("T2T_WRITE_SCHEMA").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == text,
        "`{file}` is not what the types say: T2T_WRITE_SCHEMA=1 cargo test -p t2t-protocol"
    );
}

#[test]
fn the_schema_is_that_of_the_types() {
    holds("docs/design/harness.schema.json", &schema::schema_text());
}

#[test]
fn the_python_types_are_those_of_the_schema() {
    holds("python/t2t_harness/boundary/documents.py", &schema::python_text());
}

fn arguments(part: Part, more: More) -> Arguments {
    let common = Common {
        root: "/w".to_owned(),
        scratch: "/w/s".to_owned(),
        lane: Lane::Cuda,
        model: "nvidia-h200".to_owned(),
        devices: vec![json!({"name": "NVIDIA H200"})],
        warm: Vec::new(),
        deadline_s: 1.5,
        is_told_of_quiet: false,
        timed_until: None,
    };
    let op = json!({
        "name": "add", "torch": "torch.add", "reference": null, "outputs": null, "random": {"kind": "dropout", "seed": null, "p": 0.5},
        "inputs": [
            {"name": "x", "list": null, "shape": ["M", 2], "dtype": null, "requires_grad": false, "layout": "contiguous", "optional": false,
             "init": {"kind": "sorted", "of": {"kind": "constant", "value": 0}}},
            {"name": "value", "scalar": 0.5},
        ],
        "kwargs": {"alpha": 1}, "dtypes": ["float32"], "sizes": {"small": {"M": 4}}, "measured": {}, "check_sizes": {}, "seeds": 1,
        "edges": {"strided": null}, "fixed": [], "tolerances": {"float32": [1e-5, 1.0]}, "precision": "ieee", "mutates": [], "overwrites": [], "allow": [],
        "backward": false, "broadcast": false, "deterministic": true, "cases": null,
    });
    let variant = json!({
        "name": "v1", "file": "kernels/add/v1.py", "module": null, "entry": "add", "call": null, "lanes": ["cuda"], "deterministic": true,
    });
    let read = |value: Value| serde_json::from_value(value).unwrap();
    Arguments { common, op: Some(read(op)), variant: Some(serde_json::from_value(variant).unwrap()), part, more }
}

/// What t2t puts together is what the harness is told that it gets: no key more, none less, each value as it was.
#[test]
fn requests_that_are_put_together_are_those_of_the_schema() {
    let end = CandidateEnd {
        kind: EndKind::NoReply,
        message: String::new(),
        code: None,
        signal: None,
        how: None,
        error: None,
        seconds: None,
        stdout: String::new(),
        stderr: String::new(),
        truncated: false,
        left_behind: 0,
    };
    let judge = ToJudge { prepared: None, candidate: "/w/c".to_owned(), attempt: 1, end };
    let told = json!(arguments(Part::Check(OfCheck { salt: "ab".to_owned() }), More::Judge(Box::new(judge))));
    assert_eq!(told["end"]["kind"], "no-reply");
    assert_eq!(json!(serde_json::from_value::<JudgeRequest>(told.clone()).unwrap()), told);

    let bench = OfBench {
        protocol: Protocol { runs: 1, warmup_ms: 2, rep_ms: 3, stop: None, passes: None },
        tune: Value::Null,
    };
    let sample = More::Sample(ToSample { sample: "/w/b".to_owned(), bench: json!({"clock": "host"}) });
    let told = json!(arguments(Part::Bench(bench), sample));
    assert_eq!(told["tune"], Value::Null);
    assert_eq!(json!(serde_json::from_value::<SampleRequest>(told.clone()).unwrap()), told);

    let told = json!(Arguments { op: None, variant: None, ..arguments(Part::Calibrate {}, More::Nothing {}) });
    assert_eq!(json!(serde_json::from_value::<CalibrateRequest>(told.clone()).unwrap()), told);
}

/// Returns what of a document its type has no field for, or reads otherwise.
fn unlike<T: DeserializeOwned + Serialize>(document: &Value) -> Option<String> {
    match read::exactly::<T>(document) {
        Err(misfit) => Some(misfit.to_string()),
        Ok(found) => lost(document, &json!(found)),
    }
}

/// Returns the first key of `kept` that `read` lacks.
fn lost(kept: &Value, read: &Value) -> Option<String> {
    match (kept, read) {
        (Value::Object(kept), Value::Object(read)) => kept.iter().find_map(|(name, value)| match read.get(name) {
            Some(other) => lost(value, other).map(|inner| format!("{name}.{inner}")),
            None => Some(name.clone()),
        }),
        (Value::Array(kept), Value::Array(read)) => {
            kept.iter().zip(read).enumerate().find_map(|(at, (kept, read))| Some(format!("{at}.{}", lost(kept, read)?)))
        }
        _ => None,
    }
}

/// What was published is read whole, though an earlier t2t may have written it.
#[test]
fn published_documents_fit_their_types() {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/results")];
    let mut read = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let file: Value = serde_json::from_str(&text).unwrap_or_default();
        let records = file["records"].as_array().into_iter().flatten();
        for (name, document) in records.flat_map(|record| record["documents"].as_object().into_iter().flatten()) {
            let Some(document) = document.get("json") else { continue };
            let unlike = match name.as_str() {
                "analysis" => unlike::<Analysis>(document),
                "baseline" => unlike::<Baseline>(document),
                "bench" => unlike::<Bench>(document),
                "calibration" => unlike::<Calibration>(document),
                "cost" => unlike::<Cost>(document),
                "evidence" => unlike::<Evidence>(document),
                "failure" => unlike::<Failure>(document),
                "lengths" => unlike::<BTreeMap<String, Taken>>(document),
                "launches" => unlike::<Launches>(document),
                "resources" => unlike::<Resources>(document),
                "triton_cache" => unlike::<TritonCache>(document),
                "tune" => unlike::<Tune>(document),
                "verdict" => unlike::<Verdict>(document),
                _ => continue,
            };
            assert_eq!(unlike, None, "`{name}` of {}", path.display());
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}
