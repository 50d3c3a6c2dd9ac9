//! The closure of a Python file: itself and every workspace file that its imports reach.
//!
//! It reads nothing: the caller passes a function that returns a file's content.

use std::collections::BTreeMap;

use t2t_model::path::RepoPath;

use crate::{Import, PythonFile};

/// Where imports lead.
pub trait Tree {
    /// Returns what the file at `path` says, or None where there is no such file.
    fn read(&mut self, path: &RepoPath) -> Option<PythonFile>;

    /// Returns the folders, each with `/` at its end or empty for the root, that hold the package or module of this name.
    fn homes(&mut self, name: &str) -> Vec<String>;
}

/// Returns `file` and all files of the tree that it imports, directly or through others.
pub fn closure(file: &RepoPath, tree: &mut dyn Tree) -> BTreeMap<RepoPath, PythonFile> {
    let mut found = BTreeMap::new();
    let mut open = vec![file.clone()];
    while let Some(path) = open.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let Some(python) = tree.read(&path) else { continue };
        for import in &python.imports {
            open.extend(candidates(&path, import, tree));
        }
        open.extend(package_files(&module_of(&path)));
        found.insert(path, python);
    }
    found
}

/// Returns the files that `import` may mean, in a file of the module at `path`: those that do not exist are for the caller to skip.
fn candidates(path: &RepoPath, import: &Import, tree: &mut dyn Tree) -> Vec<RepoPath> {
    let bases = base_modules(path, import, tree);
    let modules = bases.into_iter().flat_map(|base| {
        let named = import.name.as_ref().map(|name| [base.clone(), vec![name.clone()]].concat());
        [Some(base), named].into_iter().flatten()
    });
    modules.flat_map(|module| module_files(&module).into_iter().chain(package_files(&module))).collect()
}

/// Returns the modules that `import` may start from, by the parts of their paths.
fn base_modules(path: &RepoPath, import: &Import, tree: &mut dyn Tree) -> Vec<Vec<String>> {
    let named: Vec<String> = import.module.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if import.level == 0 {
        let homes = named.first().map(|name| tree.homes(name)).unwrap_or_default();
        let parts = |home: &str| home.split_terminator('/').map(str::to_owned).collect::<Vec<_>>();
        return homes.iter().map(|home| [parts(home), named.clone()].concat()).collect();
    }
    let mut package = module_of(path);
    let is_package = path.as_str().ends_with("/__init__.py");
    let up = import.level as usize - usize::from(is_package);
    // One that leaves the workspace, or its root, is Python's to refuse.
    let Some(left) = package.len().checked_sub(up).filter(|left| *left > 0) else { return Vec::new() };
    package.truncate(left);
    package.extend(named);
    vec![package]
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

    struct Files<'a>(BTreeMap<&'a str, &'a str>);

    impl Tree for Files<'_> {
        fn read(&mut self, path: &RepoPath) -> Option<PythonFile> {
            self.0.get(path.as_str()).map(|text| crate::read(text.as_bytes()))
        }

        fn homes(&mut self, name: &str) -> Vec<String> {
            let has = |home: &&&str| {
                let module = format!("{home}{name}");
                self.0.keys().any(|path| path.starts_with(&format!("{module}/")) || **path == format!("{module}.py"))
            };
            ["", "src/"].iter().filter(has).map(|home| (*home).to_owned()).collect()
        }
    }

    fn closure_of(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let found = closure(&RepoPath::new(file).unwrap(), &mut Files(files.iter().copied().collect()));
        found.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn packages_beside_the_kernels_are_followed_in_each_folder_that_has_them() {
        let files = [
            ("kernels/a/v1.py", "import torch\nimport tools\nfrom mine.deep import code\nfrom single import f\n"),
            ("tools.py", ""),
            ("src/mine/__init__.py", ""),
            ("src/mine/deep/code.py", "from ..other import g\n"),
            ("src/mine/other.py", ""),
            ("src/single.py", "from . import beside\n"),
            ("src/beside.py", ""),
            ("src/unused.py", ""),
        ];
        assert_eq!(
            closure_of(&files, "kernels/a/v1.py"),
            [
                "kernels/a/v1.py",
                "src/beside.py",
                "src/mine/__init__.py",
                "src/mine/deep/code.py",
                "src/mine/other.py",
                "src/single.py",
                "tools.py"
            ]
        );
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
