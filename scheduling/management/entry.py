"""How `up` finds its way around a machine: this program's own command line, a free port, a page that answers."""

from __future__ import annotations

import errno
import http.client
import os
import shlex
import socket
import sys
from pathlib import Path

PORTS_TRIED = 20


def command_line(*, from_shell: bool) -> list[str]:
    """The arguments that start Django's command line again, just as it was started for this process.

    A checkout's `manage.py`, a project's own, `python -m package` and an installed `cronsite` may each set up
    another import path or environment, so the same door is used again.

    Args:
        from_shell: False when the command was called from other code, whose own arguments say nothing.
    """
    if from_shell:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.parent:
            return [sys.executable, "-m", spec.parent]
        script = Path(sys.argv[0])
        if _is_python(script):
            return [sys.executable, os.path.abspath(script)]
    # -P: a folder of the working directory must not pass for an installed package.
    return [sys.executable, "-P", "-m", "django"]


def shown_command(*arguments: str) -> str:
    """What a person types for another command of this site, with the same data folder."""
    script = Path(sys.argv[0])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.parent:
        words = [_short(Path(sys.executable)), "-m", spec.parent]
    elif script.suffix == ".py":
        words = [_short(Path(sys.executable)), _short(script)]
    else:
        words = [script.name]
    data_dir = os.environ.get("DATA_DIR")
    place = f"DATA_DIR={shlex.quote(data_dir)} " if data_dir else ""
    return place + shlex.join([*words, *arguments])


def _is_python(script: Path) -> bool:
    """A script that this interpreter can run; not so the program (.exe) that stands for one on Windows."""
    if not script.is_file():
        return False
    with script.open("rb") as file:
        return script.suffix == ".py" or file.read(2) == b"#!"


def _short(path: Path) -> str:
    """Relative to the working directory when it is below it."""
    # Not resolved: the interpreter of a virtual environment is a link to the system's.
    path = Path(os.path.abspath(path))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def free_port(host: str, first: int) -> int | None:
    """The first port from `first` on that nobody listens on; None if the next 20 are all taken.

    Raises:
        OSError: when this machine cannot listen on `host`, or not on such a low port.
    """
    family, kind, protocol, _name, address = socket.getaddrinfo(host, first, type=socket.SOCK_STREAM)[0]
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        with socket.socket(family, kind, protocol) as probe:
            # As the server will do it: a port that only waits out its last connections is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address[0], port, *address[2:]))
                probe.listen()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    return None


def reachable_host(host: str) -> str:
    """The host to type into a browser on this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 (read, not bound)


def address_of(host: str, port: int) -> str:
    """`host:port` as it stands in an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def answer(host: str, port: int, path: str) -> int | None:
    """The HTTP status of a page; None while nothing answers."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
