"""Helpers of the command `up`. They find this program's command line, a free port, and the HTTP status of a page."""

from __future__ import annotations

import errno
import http.client
import os
import shlex
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

PORTS_TRIED = 20


def command_line(*, from_shell: bool) -> list[str]:
    """The arguments that start Django's command line in the same way as this process was started.

    `manage.py`, `python -m package` and an installed `cronsite` may set up different import paths or
    environments. So the processes that `up` starts must be started in the same way as `up`.

    Args:
        from_shell: False when Python code called the command. `sys.argv` then belongs to another program.
    """
    if from_shell:
        if package := _package():
            return [sys.executable, "-m", package]
        script = Path(sys.argv[0])
        if _is_python(script):
            return [sys.executable, os.path.abspath(script)]
    # -P prevents a folder in the working directory from shadowing an installed package.
    return [sys.executable, "-P", "-m", "django"]


def shown_command(*arguments: str) -> str:
    """The shell command that runs another command of this site, with the same data folder."""
    script = Path(sys.argv[0])
    if package := _package():
        words = [_short(Path(sys.executable)), "-m", package]
    elif script.suffix == ".py":
        words = [_short(Path(sys.executable)), _short(script)]
    else:
        words = [script.name]
    data_dir = os.environ.get("DATA_DIR")
    place = f"DATA_DIR={shlex.quote(data_dir)} " if data_dir else ""
    return place + shlex.join([*words, *arguments])


def _package() -> str:
    """The package that was started with `python -m`; empty for a script."""
    return getattr(getattr(sys.modules["__main__"], "__spec__", None), "parent", "")


def _is_python(script: Path) -> bool:
    """Whether this interpreter can run the file. It cannot run an .exe launcher of Windows."""
    if not script.is_file():
        return False
    with script.open("rb") as file:
        return script.suffix == ".py" or file.read(2) == b"#!"


def _short(path: Path) -> str:
    """The path relative to the working directory. A path outside the working directory becomes absolute."""
    # Do not resolve links, because a virtual environment's interpreter is a link to the system's interpreter.
    path = Path(os.path.abspath(path))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def free_port(host: str, first: int) -> int | None:
    """The first free port among PORTS_TRIED ports from `first` on; None if all of them are taken.

    Raises:
        OSError: when this machine cannot listen on `host`, or this user may not listen on such a low port.
    """
    family, kind, protocol, _name, address = socket.getaddrinfo(host, first, type=socket.SOCK_STREAM)[0]
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        with socket.socket(family, kind, protocol) as probe:
            # The server also sets SO_REUSEADDR. With this option, a port is free even if old connections of the port
            # are still in TIME_WAIT.
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
    """The host to type into a browser on this machine, if the server listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 (only compared)


def address_of(host: str, port: int) -> str:
    """`host:port` for a URL; an IPv6 host is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def answer(host: str, port: int, path: str) -> int | None:
    """The HTTP status of a page; None if no server answers."""
    unanswered = suppress(OSError, http.client.HTTPException)
    with unanswered, closing(http.client.HTTPConnection(host, port, timeout=2)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status
    return None
