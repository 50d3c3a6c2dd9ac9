"""Starts the driver: its first line on standard input says which cluster. Standard output has lines of JSON alone, whatever Ray prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from t2t_ray.messages import VERSION, Fault, Joining, Malformed, Open, read, write


def main() -> int:
    """Serve t2t until it leaves. Returns the exit code: 1 where the cluster cannot be used."""
    # Ray and its libraries print as they like.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        first = read(sys.stdin.readline())
    except Malformed as error:
        write(Fault(str(error), "t2t starts this program: it is not for people"), out)
        return 1
    if not isinstance(first, Open) or first.version != VERSION:
        write(Fault(f"t2t_ray speaks version {VERSION}, and t2t another one", "install both from one release"), out)
        return 1
    try:
        from t2t_ray.cluster import HINT, Cluster, Unreachable
    except ImportError as error:
        write(Fault(f"{sys.executable} cannot import Ray: {error}", "install it: `pip install t2t[ray]`"), out)
        return 1
    from t2t_ray.driver import Driver

    write(Joining(HINT), out)
    try:
        cluster = Cluster(first.address)
    except Unreachable as error:
        write(Fault(str(error), error.hint), out)
        return 1
    Driver(cluster, Path(first.scratch), out, cores=first.cores).run(sys.stdin)
    return 0


if __name__ == "__main__":
    # Threads of Ray may hang once a head is gone.
    code = main()
    sys.stderr.flush()
    os._exit(code)
