"""t2t from Python: builds, and what came of them, as values.

Each function runs the program `t2t`, as a terminal would, and reads what it writes for programs
(docs/reference/machine-readable.md). There is no second engine: locks, caches and keys are those of every other call.

    import t2t

    built = t2t.build("softmax")
    if not built.is_whole:
        for failure in built.failures:
            print(failure.text)
    print(t2t.frame(t2t.results("softmax")))
"""

from t2t._frames import frame
from t2t._program import MachineError, MisuseError, T2tError, program
from t2t._results import (
    Action,
    Build,
    Failure,
    Figure,
    Kernel,
    Result,
    State,
    artifact,
    build,
    results,
    status,
)

__all__ = [
    "Action",
    "Build",
    "Failure",
    "Figure",
    "Kernel",
    "MachineError",
    "MisuseError",
    "Result",
    "State",
    "T2tError",
    "artifact",
    "build",
    "frame",
    "program",
    "results",
    "status",
]
