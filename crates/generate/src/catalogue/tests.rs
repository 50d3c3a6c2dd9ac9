//! The catalogue as it is embedded, and what a workspace can do to it.

use super::*;

fn catalogue() -> Catalogue {
    Catalogue::read(&Files::default()).unwrap()
}

#[test]
fn an_op_is_found_by_each_of_its_names() {
    let catalogue = catalogue();
    for name in ["gelu", "F.gelu", "nn.functional.gelu", "torch.nn.functional.gelu", " GELU "] {
        assert_eq!(catalogue.find(name).unwrap().torch, "torch.nn.functional.gelu", "{name}");
    }
    for name in ["layernorm", "F.layernorm", "LayerNorm", "functional.layer_norm"] {
        assert_eq!(catalogue.find(name).unwrap().name, "layer_norm", "{name}");
    }
    assert_eq!(catalogue.find("torch.special.expit").unwrap().name, "sigmoid");
    assert_eq!(catalogue.find("linalg.vector_norm").unwrap().name, "vector_norm");
    assert_eq!(catalogue.find("special.entr").unwrap().name, "special_entr");
    assert!(catalogue.find("softmx").is_none());
}

#[test]
fn an_unknown_name_has_the_nearest_ones() {
    let catalogue = catalogue();
    assert_eq!(catalogue.nearest("softmx")[0], "softmax");
    assert_eq!(catalogue.nearest("F.layernorm")[0], "layer_norm");
    assert!(catalogue.nearest("zzzzqq").is_empty());
}

#[test]
fn no_two_ops_are_the_same_function_of_torch() {
    let catalogue = catalogue();
    let mut names = BTreeMap::new();
    for op in catalogue.ops() {
        for full in op.aliases.iter().chain([&op.torch]) {
            assert!(full.starts_with("torch."), "{full}");
            assert_eq!(names.insert(full.clone(), op.name.clone()), None, "{full} stands twice");
        }
    }
}

#[test]
fn an_entry_has_inputs_and_dtypes_and_no_key_that_is_unknown() {
    let catalogue = catalogue();
    for op in catalogue.ops() {
        let entry = op.entry();
        let keys: Vec<&str> = entry.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys[..2], ["torch", "inputs"], "{}", op.name);
        assert!(keys.contains(&"dtypes"), "{}", op.name);
        assert_eq!(entry.len(), op.entry.len() + 1, "{} has a key that is not written: {:?}", op.name, op.entry);
        assert!(op.math.ends_with('.') && op.math.is_ascii() && op.title.is_ascii(), "{}", op.name);
    }
}

#[test]
fn a_workspace_adds_a_family_and_takes_no_op_of_another() {
    let family = |op: &str| {
        let text = format!(
            r#"{{"title": "own", "template": "pointwise.py.jinja", "techniques": [{{"variant": "v2_a", "summary": "a"}}, {{"variant": "v3_b", "summary": "b"}}],
            "with": {{"operands": ["input"]}}, "ops": {{"{op}": {{"torch": "torch.{op}", "title": "Own", "math": "out = x.", "with": {{"value": "x"}}}}}}}}"#
        );
        Files::with([("own.json".to_owned(), text)])
    };
    let catalogue = Catalogue::read(&family("positive")).unwrap();
    assert_eq!(catalogue.find("torch.positive").unwrap().family, "own");
    let fault = Catalogue::read(&family("abs")).unwrap_err();
    assert!(fault.message.contains("op `abs` is in family"), "{fault}");
    let fault = Catalogue::read(&Files::with([("own.json".to_owned(), "{".to_owned())])).unwrap_err();
    assert_eq!(fault.file, "own.json");
}
