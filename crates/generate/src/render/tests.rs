//! What is rendered, read back by t2t's own reader of Python, and looked at as text.

use std::collections::BTreeSet;

use super::*;

/// What a template leaves where it forgot something.
const RESIDUE: &[&str] = &["{{", "{%", "{#", "|||", "undefined", "AXIS", "FLOAT", "ROWS", "COLS", "None None"];

fn all() -> Generator {
    Generator::new(&Files::default()).unwrap()
}

/// Calls `look` with each op's request and the file that is made of it.
fn each(mut look: impl FnMut(&Request<'_>, &str)) {
    let generator = all();
    for op in generator.catalogue.ops() {
        for variant in Variant::ALL {
            for form in Form::ALL {
                let request = Request::new(op, variant, form);
                look(&request, &generator.render(&request).unwrap());
            }
        }
    }
}

#[test]
fn every_file_is_python_with_its_wrapper_and_its_docstring() {
    each(|request, text| {
        let place = format!("{} {:?} {:?}", request.op.name, request.variant, request.form);
        let file = t2t_python::read(text.as_bytes());
        assert_eq!(file.fault, None, "{place}\n{text}");
        assert!(file.callables.contains(&request.entry), "{place}: {:?}", file.callables);
        let docstring = file.docstring.unwrap();
        assert!(docstring.starts_with(&request.op.title), "{place}: {docstring}");
        for part in ["\nMath. ", "\nTechnique. ", "\nBlocks. "] {
            assert!(docstring.contains(part), "{place} says nothing of {part:?}");
        }
    });
}

#[test]
fn no_file_has_residue_of_its_template_or_lines_that_are_too_long() {
    each(|request, text| {
        let place = format!("{} {:?} {:?}", request.op.name, request.variant, request.form);
        for residue in RESIDUE {
            assert!(!text.contains(residue), "{place} has {residue:?}\n{text}");
        }
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{place}");
        for line in text.lines() {
            assert!(
                line.chars().count() <= wrap::WIDTH && line.trim_end() == line && !line.contains('\t'),
                "{place}: {line:?}"
            );
        }
    });
}

#[test]
fn the_four_variants_are_four_kernels() {
    let generator = all();
    let mut kernels = 0;
    for op in generator.catalogue.ops() {
        let meaning = |variant| {
            let text = generator.render(&Request::new(op, variant, Form::Standard)).unwrap();
            t2t_python::read(text.as_bytes()).meaning.to_string()
        };
        let meanings: BTreeSet<String> = Variant::ALL.map(meaning).into();
        assert_eq!(meanings.len(), 4, "{}", op.name);
        kernels += 4;
    }
    assert!(kernels >= 4 * 160, "{kernels} kernels");
}

#[test]
fn a_later_attempt_is_another_kernel() {
    let generator = all();
    for op in generator.catalogue.ops() {
        let request = Request::new(op, Variant::Both, Form::Standard);
        let attempts = generator.attempts(&request).unwrap();
        assert!(attempts.len() >= 3, "{} has {} forms", op.name, attempts.len());
        assert_eq!(attempts[0].0, Form::Standard);
        let texts: BTreeSet<&String> = attempts.iter().map(|(_, text)| text).collect();
        assert_eq!(texts.len(), attempts.len(), "{}", op.name);
    }
}

#[test]
fn equal_requests_give_equal_bytes() {
    let (one, other) = (all(), all());
    for op in one.catalogue.ops().step_by(7) {
        let request = Request::new(op, Variant::Both, Form::Standard);
        assert_eq!(one.render(&request), other.render(&request));
    }
}

#[test]
fn a_wrapper_has_the_name_that_was_asked_for_and_gradients_only_on_demand() {
    let generator = all();
    let mut request = Request::new(generator.catalogue.find("F.gelu").unwrap(), Variant::Second, Form::Standard);
    assert!(request.backward);
    assert!(generator.render(&request).unwrap().contains("class Gelu(torch.autograd.Function):"));
    request.backward = false;
    request.entry = "triton_my_gelu".to_owned();
    let text = generator.render(&request).unwrap();
    assert!(
        text.contains("def triton_my_gelu(input: torch.Tensor, approximate: str = \"none\") -> torch.Tensor:"),
        "{text}"
    );
    assert!(text.contains("def my_gelu_kernel(") && !text.contains("autograd"), "{text}");
}

#[test]
fn an_op_has_a_gradient_where_its_entry_says_so_and_only_if_it_is_wanted() {
    let generator = all();
    let has = |request: &Request<'_>| generator.render(request).unwrap().contains("(torch.autograd.Function):");
    let mut gradients = 0;
    for op in generator.catalogue.ops() {
        let mut request = Request::new(op, Variant::Both, Form::Standard);
        assert_eq!(has(&request), request.backward, "{}", op.name);
        gradients += usize::from(request.backward);
        request.backward = false;
        assert!(!has(&request), "{} has a gradient that nobody wanted", op.name);
    }
    assert!(gradients >= 150, "{gradients} ops with a gradient");
}

#[test]
fn a_workspace_overrides_a_template_and_its_mistakes_have_a_place() {
    let own = |text: &str| Files::with([("scan.py.jinja".to_owned(), text.to_owned())]);
    let generator = Generator::new(&own("\"\"\"{{ op.title }}.\n\"\"\"\nNAME = \"{{ name }}\"\n")).unwrap();
    let request = Request::new(generator.catalogue.find("cumsum").unwrap(), Variant::Baseline, Form::Standard);
    let text = generator.render(&request).unwrap();
    assert_eq!(text, "\"\"\"Cumulative sum.\n\"\"\"\n\nNAME = \"cumsum\"\n");
    let wrong = Generator::new(&own("fine\n{{ nothing.there }}\n")).unwrap();
    let fault = wrong.render(&request).unwrap_err();
    assert_eq!((fault.file.as_str(), fault.line), ("scan.py.jinja", 2));
}
