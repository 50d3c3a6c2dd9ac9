//! Writes a workspace of generated kernels: `render FOLDER [OP | family:NAME]…`, all ops where none is named. `--form small` renders another form, `--files FOLDER` takes families and templates from there, `--list` in the
//! place of the folder only lists names, `--table` prints them by family.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example for developers, no part of the product"
)]

use std::fs;
use std::path::Path;

use t2t_generate::catalogue::{Catalogue, Op};
use t2t_generate::files::Files;
use t2t_generate::render::{Form, Generator, Request, Variant, variant_names};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let form = arguments.iter().position(|one| one == "--form").map_or(Form::Standard, |place| {
        arguments.remove(place);
        form(&arguments.remove(place))
    });
    let own = arguments.iter().position(|one| one == "--files").map(|place| {
        arguments.remove(place);
        arguments.remove(place)
    });
    let files = own.map_or_else(Files::default, |folder| Files::with(read(&folder)));
    let generator = Generator::new(&files).unwrap();
    let catalogue = &generator.catalogue;
    let folder = arguments.remove(0);
    let ops = chosen(catalogue, &arguments);
    if folder == "--table" {
        print!("{}", catalogue.table());
        return;
    }
    if folder == "--list" {
        for op in ops {
            println!("{}", op.name);
        }
        return;
    }
    let mut text = "version: 1\nops:\n".to_owned();
    for op in ops {
        text += &format!("  {}:\n", op.name);
        for (key, value) in op.entry() {
            text += &format!("    {key}: {value}\n");
        }
        let names = variant_names(catalogue, op);
        text += &format!("    variants: [{}]\n", names.join(", "));
        let kernels = Path::new(&folder).join("kernels").join(&op.name);
        fs::create_dir_all(&kernels).unwrap();
        for (variant, name) in Variant::ALL.into_iter().zip(names) {
            let rendered = generator.render(&Request::new(op, variant, form)).unwrap();
            fs::write(kernels.join(name + ".py"), rendered).unwrap();
        }
    }
    fs::write(Path::new(&folder).join("ops.yaml"), text).unwrap();
}

/// Returns the files of a folder by name.
fn read(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())).collect()
}

fn form(name: &str) -> Form {
    serde_json::from_value(name.into()).unwrap()
}

/// Returns the ops that are named, by themselves or by their family.
fn chosen<'a>(catalogue: &'a Catalogue, names: &[String]) -> Vec<&'a Op> {
    if names.is_empty() {
        return catalogue.ops().collect();
    }
    let of = |name: &String| -> Vec<&'a Op> {
        match name.strip_prefix("family:") {
            Some(family) => catalogue.ops().filter(|op| op.family == family).collect(),
            None => {
                vec![catalogue.find(name).unwrap_or_else(|| panic!("no op `{name}`: {:?}", catalogue.nearest(name)))]
            }
        }
    };
    names.iter().flat_map(of).collect()
}
