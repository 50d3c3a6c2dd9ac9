"""Compiles kernels once more, with the lines of their source, from what was compiled without. It reads a question and answers, both in JSON.

The signature is that of the compiled code: its arguments with their types and what is known of them. It needs no GPU.
"""

import contextlib
import importlib.util
import json
import os
import re
import sys
import tempfile

ARGUMENT = re.compile(r"%(\w+): (!tt\.ptr<(\w+)>|\w+)(?: \{([^}]*)\})?(?: loc\([^)]*\))?(?=[,)])")
NUMBERS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
)
STAGES = ("ttir", "ttgir", "ptx")
OPERATION = re.compile(r"\b(?:tt|ttg|ttng|arith|scf|cf|math)\.\w+")


def arguments(code):
    """Returns the name, the type as Triton's signatures have it, and the attributes of each argument of the compiled kernel."""
    head = code[code.index("tt.func public") :].split("\n", 1)[0]
    inside = head[head.index("(") : head.rindex("attributes") if "attributes" in head else len(head)]
    found = []
    for name, kind, element, known in ARGUMENT.findall(inside):
        told = NUMBERS.get(element or kind, element or kind)
        attributes = [[key, int(value)] for key, value in re.findall(r"([\w.]+) = (\d+) : i32", known)]
        found.append((name, f"*{told}" if element else told, attributes))
    if len(found) != inside.count("%"):
        raise ValueError("its arguments are of other types than pointers and numbers")
    return found


def load(question):
    """Returns the module of the kernel file, as a build imports it."""
    sys.path[:0] = [os.path.join(question["root"], folder) for folder in ["", *question["sources"]]]
    path = os.path.join(question["root"], question["file"])
    sys.path.insert(0, os.path.dirname(path))
    # The name that others import it by: what it imports relatively lies beside it.
    name = ".".join(os.path.splitext(question["file"])[0].split("/"))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def find(module, name, root):
    """Returns the function of Triton that is called so: the module's, else that of a module of the workspace which it imports."""
    from triton.runtime.jit import JITFunction

    others = [other for other in sys.modules.values() if str(getattr(other, "__file__", None)).startswith(root)]
    for place in [module, *others]:
        for value in list(vars(place).values()):
            while not isinstance(value, JITFunction) and hasattr(value, "fn") and not isinstance(value, type):
                value = value.fn
            if isinstance(value, JITFunction) and value.fn.__name__ == name:
                return value
    raise ValueError(f"the file has no function `{name}` of Triton")


def compiled(function, asked):
    """Returns the stages of the kernel with the lines of its source."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    make = ASTSource
    if function.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        make = GluonASTSource
    known = {name: (kind, attributes) for name, kind, attributes in arguments(asked["code"])}
    signature = {name: known[name][0] if name in known else "constexpr" for name in function.arg_names}
    attributes = {
        (place,): known[name][1] for place, name in enumerate(function.arg_names) if name in known and known[name][1]
    }
    told = failure = None
    for constants in guesses(function, known, asked["constants"]):
        source = make(fn=function, signature=signature, constexprs=constants, attrs=attributes)
        options = {name: asked["metadata"][name] for name in OPTIONS if asked["metadata"].get(name) is not None}
        target = asked["metadata"]["target"]
        try:
            made = triton.compile(
                source, target=GPUTarget(target["backend"], target["arch"], target["warp_size"]), options=options
            )
        except Exception as error:
            failure = failure or error
            continue
        stages = {stage: made.asm[stage] for stage in STAGES if stage in made.asm}
        if OPERATION.findall(stages.get("ttir", stages["ttgir"])) == OPERATION.findall(asked["code"]):
            return stages
        told = told or stages
    if told is None:
        raise failure
    return told


def guesses(function, known, constants):
    """Returns what the constants of the compiled code may be, by place: not all are kept.

    A parameter that is no constant is 1 where the code has none of it, or none. One that is, and no integer, is most often a flag.
    """
    missing = [
        (place, parameter)
        for place, parameter in enumerate(function.params)
        if parameter.name not in known and parameter.name not in constants
    ]
    kept = {
        (place,): constants[name]
        for place, name in enumerate(function.arg_names)
        if name in constants and name not in known
    }
    plain = any(not parameter.is_constexpr for _, parameter in missing)
    flags = any(parameter.is_constexpr for _, parameter in missing)
    for number in (1, None) if plain else (1,):
        for flag in (False, True, None) if flags else (False,):
            yield kept | {(place,): flag if parameter.is_constexpr else number for place, parameter in missing}


def answer(question):
    module = load(question)
    told = []
    for asked in question["kernels"]:
        try:
            told.append(compiled(find(module, asked["kernel"], question["root"]), asked))
        except Exception as error:
            told.append({"why": f"{type(error).__name__}: {error}".splitlines()[0]})
    return told


if __name__ == "__main__":
    question = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        os.environ["TRITON_DISABLE_LINE_INFO"] = "0"
        # What kernel code prints is no answer.
        with contextlib.redirect_stdout(sys.stderr):
            told = answer(question)
    json.dump(told, sys.stdout)
