"""Runs a cluster of three RabbitMQ nodes for the fault tests. A test can kill, suspend, cut off and restart a node."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.node import NOT_AVAILABLE, SCRIPT
from tests.support import wait_for

SIZE = 3


class Node:
    """One node of the cluster. Its process group contains the whole server."""

    def __init__(self, folder: Path, root: str, port: int, mapper: int, terms: Sequence[str]) -> None:
        self.folder, self.root, self.port = folder, root, port
        self.name = f"tests{port}@localhost"
        self._environment = {**os.environ, "NODE_PORT": str(port), "NODE_MAPPER": str(mapper)}
        self._terms = terms

    def start(self) -> None:
        """Start the node, or start it again with the data that it had."""
        command = [SCRIPT, "start", self.folder, self.root, *self._terms]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120)
        if done.returncode == NOT_AVAILABLE:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        """End the node with SIGTERM, as a rolling restart does."""
        subprocess.run([SCRIPT, "stop", self.folder], check=True, timeout=60)

    def kill(self) -> None:
        """Kill the node with SIGKILL."""
        group = self._group()
        (self.folder / "pid").unlink()
        os.killpg(group, signal.SIGKILL)
        wait_for(lambda: not _listens(self.port), "the node is dead")

    def suspend(self) -> None:
        """Suspend the node. Its sockets accept connections, and nothing answers."""
        os.killpg(self._group(), signal.SIGSTOP)

    def resume(self) -> None:
        """Let a suspended node continue."""
        os.killpg(self._group(), signal.SIGCONT)

    def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node and return its output."""
        command = [SCRIPT, "ctl", self.folder, self.root, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def url(self) -> str:
        """The URL of this node alone."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def _group(self) -> int:
        return int((self.folder / "pid").read_text())


class Cluster:
    """Three nodes that know each other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)

    def url(self, *nodes: Node, prefix: str = "") -> str:
        """The BROKER_URL that names these nodes, by default all of them."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes or self.nodes)
        return f"amqp://guest:guest@{hosts}/" + (f"?prefix={prefix}" if prefix else "")

    def home(self, queue: str) -> Node:
        """The node of a classic queue, or the leader of a quorum queue."""
        for node in self.nodes:
            with suppress(AssertionError, FileNotFoundError, subprocess.TimeoutExpired):
                text = node.ctl("eval", _HOME % queue)
                return next(node for node in self.nodes if node.name in text)
        raise AssertionError(f"no node knows {queue}")

    def others(self, node: Node) -> list[Node]:
        """The nodes other than this one."""
        return [other for other in self.nodes if other is not node]

    def cut_off(self, node: Node) -> None:
        """Separate a node from the others. Clients still reach all nodes."""
        self._cookie(node, secrets.token_hex(8))
        for other in self.others(node):
            other.ctl("eval", f"erlang:disconnect_node('{node.name}').")

    def heal(self, node: Node) -> None:
        """End the separation."""
        self._cookie(node, (node.folder / ".erlang.cookie").read_text())
        for other in self.others(node):
            other.ctl("eval", f"net_kernel:connect_node('{node.name}').")

    def _cookie(self, node: Node, cookie: str) -> None:
        for other in self.others(node):
            other.ctl("eval", f"erlang:set_cookie('{node.name}', '{cookie}').")
            node.ctl("eval", f"erlang:set_cookie('{other.name}', '{cookie}').")


_HOME = """{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)),
case amqqueue:get_pid(Q) of {_, Node} -> Node; Pid -> node(Pid) end."""


@contextmanager
def cluster(folder: Path, root: str, *terms: str) -> Iterator[Cluster]:
    """Start three nodes as one cluster, and stop them at the end. Skip the test if no node can run here.

    Args:
        folder: the folder for the data of all nodes.
        root: the folder into which `rabbitmq-node fetch` has unpacked RabbitMQ.
        terms: RabbitMQ's settings as Erlang terms.
    """
    first = _free_ports(2 * SIZE + 1)
    mapper, ports = first + 2 * SIZE, [first + 2 * number for number in range(SIZE)]
    names = ", ".join(f"'tests{port}@localhost'" for port in ports)
    formation = "{cluster_formation, [{peer_discovery_backend, rabbit_peer_discovery_classic_config}]}"
    known = [formation, f"{{cluster_nodes, {{[{names}], disc}}}}", *terms]
    cookie = secrets.token_hex(16)
    for port in ports:
        home = folder / str(port)
        home.mkdir(parents=True)
        (home / ".erlang.cookie").write_text(cookie)
        (home / ".erlang.cookie").chmod(0o400)
    nodes = [Node(folder / str(port), root, port, mapper, known) for port in ports]
    command = [SCRIPT, "mapper", folder / "mapper", root, str(mapper)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == NOT_AVAILABLE:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    try:
        with ThreadPoolExecutor(SIZE) as pool:
            list(pool.map(Node.start, nodes))
        for node in nodes:
            node.ctl("await_online_nodes", str(SIZE))
        yield Cluster(nodes)
    finally:
        for node in nodes:
            with suppress(FileNotFoundError, ProcessLookupError):
                node.resume()
            node.stop()
        subprocess.run([SCRIPT, "stop", folder / "mapper"], check=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> int:
    while True:
        first = 20_000 + secrets.randbelow(10_000)
        if not any(_listens(port) for port in range(first, first + count)):
            return first
        time.sleep(0.01)
