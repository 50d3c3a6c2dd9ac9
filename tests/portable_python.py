"""Copies this interpreter, its standard library and the worker's module to where another user may read them.

usage: python portable_python.py FOLDER

`FOLDER/bin/python` runs the copy. Packages are left where they are, and found there by who may read them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path


def main(folder: Path) -> None:
    """Copy all that is needed to import `t2t_worker`."""
    release = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program, library = folder / "bin" / release, folder / "lib"
    program.parent.mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), program)
    skipped = shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__")
    for kind in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        shutil.copytree(kind, library / release, ignore=skipped, dirs_exist_ok=True)
    for shared in Path(sysconfig.get_config_var("LIBDIR") or "/").glob("libpython3*.so*"):
        shutil.copy(shared, library)
    found = importlib.util.find_spec("t2t_worker")
    if found is None or found.origin is None:
        sys.exit("error: this interpreter has no `t2t_worker`")
    module = folder / "module"
    module.mkdir()
    for file in Path(found.origin).parent.glob("t2t_worker*.so"):
        shutil.copy(file, module)
    site = library / release / "site-packages"
    site.mkdir()
    packages = [path for path in map(sysconfig.get_path, ("purelib", "platlib"))]
    (site / "portable.pth").write_text("\n".join([str(module), *packages]) + "\n")
    # The program may look for its library where it was built.
    start = (
        f'#!/bin/sh\nexport LD_LIBRARY_PATH="{library}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\nexec "{program}" "$@"\n'
    )
    for name in ("python", "python3"):
        script = program.with_name(name)
        script.write_text(start)
        script.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
