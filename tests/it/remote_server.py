"""One server for the tests of the remote cache, on a port that the system chooses; the port is printed when it listens."""

import os
import sys
import threading
from typing import Any


def s3() -> tuple[int, Any]:
    """Serves Amazon's S3 as moto has it, with a bucket `kernels`."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()

    import boto3

    names = {"region_name": "us-east-1", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", **names).create_bucket(Bucket="kernels")
    return port, server


def webdav(folder: str) -> tuple[int, Any]:
    """Serves `folder` over WebDAV, to the user `kernels` with the password `hush` alone."""
    from cheroot import wsgi
    from wsgidav.wsgidav_app import WsgiDAVApp

    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": folder},
            "simple_dc": {"user_mapping": {"*": {"kernels": {"password": "hush"}}}},
            "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
            "verbose": 0,
            "logging": {"enable": False},
        }
    )
    server = wsgi.Server(("127.0.0.1", 0), app, numthreads=8)
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()
    return server.bind_addr[1], server


def redis() -> tuple[int, Any]:
    """Serves Redis as fakeredis has it."""
    from fakeredis import TcpFakeServer

    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1], server


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    port, _server = {"s3": s3, "webdav": webdav, "redis": redis}[kind](*rest)
    print(port, flush=True)
    # Whoever started it closes its end, however it ends.
    sys.stdin.buffer.read()
    os._exit(0)
