//! The closure of a Python file: itself and every workspace file that its imports reach.
//!
//! It reads nothing: what a file holds is asked of a function that the caller gives.

use std::collections::BTreeMap;

use crate::path::RepoPath;
use crate::python::{Import, Python};

/// Returns `file` and all files of `packages` that it imports, directly or through others. `read` answers None where there is no such file.
pub fn closure(
    file: &RepoPath,
    packages: &[&str],
    read: &mut dyn FnMut(&RepoPath) -> Option<Python>,
) -> BTreeMap<RepoPath, Python> {
    let mut found = BTreeMap::new();
    let mut open = vec![file.clone()];
    while let Some(path) = open.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let Some(python) = read(&path) else { continue };
        for import in &python.imports {
            open.extend(candidates(&path, import, packages));
        }
        open.extend(package_files(&module_of(&path)));
        found.insert(path, python);
    }
    found
}

/// Returns the files that `import` may mean, in a file of the module at `path`: those that do not exist are for the caller to skip.
fn candidates(path: &RepoPath, import: &Import, packages: &[&str]) -> Vec<RepoPath> {
    let Some(base) = base_module(path, import) else { return Vec::new() };
    if !packages.contains(&base.first().map_or("", String::as_str)) {
        return Vec::new();
    }
    let mut modules = vec![base.clone()];
    if let Some(name) = &import.name {
        modules.push([base, vec![name.clone()]].concat());
    }
    modules.iter().flat_map(|module| module_files(module).into_iter().chain(package_files(module))).collect()
}

/// Returns the dotted module that `import` starts from, as parts.
fn base_module(path: &RepoPath, import: &Import) -> Option<Vec<String>> {
    let named = import.module.split('.').filter(|part| !part.is_empty()).map(str::to_owned);
    if import.level == 0 {
        return Some(named.collect());
    }
    let mut package = module_of(path);
    let is_package = path.as_str().ends_with("/__init__.py");
    let up = import.level as usize - usize::from(is_package);
    package.truncate(package.len().checked_sub(up)?);
    package.extend(named);
    Some(package)
}

/// Returns the module at `path` as parts: `kernels/softmax/v1.py` is `kernels.softmax.v1`.
fn module_of(path: &RepoPath) -> Vec<String> {
    let stem = path.as_str().trim_end_matches(".py").trim_end_matches("/__init__");
    stem.split('/').map(str::to_owned).collect()
}

fn module_files(module: &[String]) -> Vec<RepoPath> {
    let base = module.join("/");
    [format!("{base}/__init__.py"), format!("{base}.py")].iter().filter_map(|path| RepoPath::new(path).ok()).collect()
}

/// Returns the `__init__.py` of every package around `module`: importing a module runs them.
fn package_files(module: &[String]) -> Vec<RepoPath> {
    let files = (1..module.len()).map(|depth| format!("{}/__init__.py", module[..depth].join("/")));
    files.filter_map(|path| RepoPath::new(&path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closure_of(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let tree: BTreeMap<&str, &str> = files.iter().copied().collect();
        let mut read = |path: &RepoPath| tree.get(path.as_str()).map(|text| crate::python::read(text.as_bytes()));
        let found = closure(&RepoPath::new(file).unwrap(), &["kernels"], &mut read);
        found.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn relative_and_absolute_imports_are_followed_and_packages_run() {
        let files = [
            ("kernels/__init__.py", ""),
            ("kernels/a/v1.py", "from .common import f\nfrom kernels.b import v2\nimport torch\n"),
            ("kernels/a/common.py", "from .. import shared\n"),
            ("kernels/shared.py", ""),
            ("kernels/b/v2.py", "from kernels.a.v1 import g\n"),
            ("kernels/b/v3.py", ""),
        ];
        assert_eq!(
            closure_of(&files, "kernels/a/v1.py"),
            ["kernels/__init__.py", "kernels/a/common.py", "kernels/a/v1.py", "kernels/b/v2.py", "kernels/shared.py"]
        );
    }

    #[test]
    fn an_import_that_leaves_the_workspace_is_not_followed() {
        assert_eq!(
            closure_of(&[("kernels/a/v1.py", "from .... import x\nimport os\n")], "kernels/a/v1.py"),
            ["kernels/a/v1.py"]
        );
    }
}
