# The first lines that a worker's Python runs, as `$PYTHON -c TEXT FOLDER`: they must parse in any Python. FOLDER, where it
# is not empty, holds the module `t2t_worker`. Standard input is the socket to t2t.
import sys

# `-c` puts the working directory first, and a relative entry of PYTHONPATH would mean another folder here.
sys.path[:] = [entry for entry in sys.path if entry.startswith("/")]
folder = sys.argv.pop()


def unfit(kind, reason):
    import json
    import os
    import struct

    body = json.dumps({"unfit": {"kind": kind, "reason": reason}}).encode("utf-8")
    os.write(0, struct.pack(">I", len(body)) + body)
    sys.exit(1)


if sys.version_info < (3, 10):  # noqa: UP036 - this is where older ones are told
    unfit("old_python", "Python " + sys.version.split()[0] + " is older than 3.10")
if folder:
    sys.path.insert(0, folder)
try:
    import t2t_worker
except ImportError as error:
    unfit("no_module", str(error))
if folder:
    sys.path.remove(folder)
t2t_worker.serve()
