"""A proxy in front of a server. With the proxy, a test can end, refuse and freeze connections."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress


def _nothing(_data: bytes) -> None:
    pass


class Proxy:
    """A proxy that listens on a port of its own and forwards TCP connections to `host:port`.

    Args:
        tls: if given, clients connect with TLS. The proxy sends the decrypted data to the server.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._tls = (host, port), tls
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._open = True
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections. The proxy still accepts new connections."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def shut(self) -> None:
        """End all connections and accept no new connections."""
        with self._lock:
            self._open = False
        self.cut()

    def reopen(self) -> None:
        """Accept new connections again."""
        self._open = True

    def freeze(self) -> None:
        """Keep the connections open but forward nothing, as if the cable were pulled."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Forward the data that has waited since `freeze`, and continue."""
        self._flowing.set()

    def close(self) -> None:
        """Stop listening and end all connections."""
        self.thaw()
        self._listener.close()
        self.cut()

    def listener(self) -> Callable[[bytes], None]:
        """Return a function for a new connection. The proxy passes all bytes from the server to this function."""
        return _nothing

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._open:
                client.close()
                continue
            try:
                if self._tls is not None:
                    client.settimeout(5)
                    client = self._tls.wrap_socket(client, server_side=True)
                    client.settimeout(None)
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                if not self._open:  # `shut` has ended the other connections meanwhile, and would miss this one
                    client.close()
                    server.close()
                    continue
                self._pairs.append((client, server))
            for source, sink, heard in ((client, server, _nothing), (server, client, self.listener())):
                threading.Thread(target=self._pump, args=(source, sink, heard), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, heard: Callable[[bytes], None]) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                heard(data)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
