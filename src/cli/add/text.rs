//! The entry of an op as people write it.

use t2t_generate::catalogue::Op;
use t2t_generate::json::Json;
use t2t_spec::entry::word;

use super::kernels::Writing;

/// Returns the text of an op's entry in ops.yaml, its key without indentation. It names the generator where builds are to write the kernels.
pub(super) fn entry(name: &str, op: &Op, variants: &[String], writing: Writing) -> String {
    let mut text = format!("{name}:\n");
    for (key, value) in op.entry() {
        text += &format!("  {key}: {}\n", flow(&value));
    }
    text += &format!("  variants: [{}]\n", variants.join(", "));
    match writing {
        Writing::Builds => text + "  generator: template\n",
        Writing::Now => text,
    }
}

/// Returns a value in YAML's flow style, in quotes only where it must be.
fn flow(value: &Json) -> String {
    match value {
        Json::Text(text) => word(text),
        Json::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Mapping(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", word(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use t2t_generate::catalogue::Catalogue;
    use t2t_generate::files::Files;
    use t2t_generate::render::variant_names;
    use t2t_spec::Spec;

    use super::*;

    #[test]
    fn every_entry_means_what_the_catalogue_says() {
        let catalogue = Catalogue::read(&Files::default()).unwrap();
        for op in catalogue.ops() {
            let variants = variant_names(&catalogue, op);
            let mut plain = format!("version: 1\nops:\n  {}:\n", op.name);
            for (key, value) in op.entry() {
                plain += &format!("    {key}: {value}\n");
            }
            plain += &format!("    variants: [{}]\n", variants.join(", "));
            let mut written = "version: 1\nops:\n".to_owned();
            for line in entry(&op.name, op, &variants, Writing::Now).lines() {
                written += &format!("  {line}\n");
            }
            let parse = |text: &str| Spec::parse("ops.yaml", text.as_bytes(), None);
            assert_eq!(parse(&written), parse(&plain), "{written}");
            assert!(parse(&written).is_ok(), "{written}");
        }
    }

    #[test]
    fn an_entry_reads_as_people_write_it() {
        let catalogue = Catalogue::read(&Files::default()).unwrap();
        let text = entry("rows", catalogue.find("softmax").unwrap(), &["v1_baseline".to_owned()], Writing::Builds);
        let expected = "rows:\n  torch: torch.nn.functional.softmax\n  inputs: {input: [M, N]}\n  kwargs: {dim: -1}\n  dtypes: [float32, float16]\n  backward: true\n  variants: [v1_baseline]\n  generator: template\n";
        assert_eq!(text, expected);
    }
}
