"""What two processes say to each other: length-prefixed JSON objects over a stream socket, with file descriptors. Nothing is ever unpickled; a
message from a contestant may be anything."""

import json
import os
import socket
import struct
import time

MAX_MESSAGE = 8 << 20  # bytes of JSON either side accepts


class Closed(ConnectionError):
    """The other side is gone."""


class BadMessage(ValueError):
    """The other side sent something that is not of the protocol."""


class Channel:
    """Length-prefixed JSON objects with file descriptors over a stream socket."""

    def __init__(self, sock: socket.socket):
        self.sock = sock

    def send(self, message: dict, fds: tuple[int, ...] | list[int] = ()):
        data = json.dumps(message).encode()
        data = struct.pack("<IB", len(data), len(fds)) + data
        try:
            sent = socket.send_fds(self.sock, [data[:5]], list(fds)) if fds else self.sock.send(data[:5])
            self.sock.sendall(data[sent:])
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from error

    def recv(self, timeout: float | None = None) -> tuple[dict, list[int]]:
        """The next message, whole, and its descriptors. TimeoutError after `timeout` seconds, Closed at the end of the stream."""
        deadline, fds = None if timeout is None else time.monotonic() + timeout, []
        try:
            self.sock.settimeout(timeout)
            data, fds, _, _ = socket.recv_fds(self.sock, 5, 64)
            if not data:
                raise Closed("end of stream")
            header = data + self._exactly(5 - len(data), deadline)
            length, expected = struct.unpack("<IB", header)
            if length > MAX_MESSAGE or expected != len(fds):
                raise BadMessage(f"a message of {length} bytes with {len(fds)} descriptors of {expected}")
            message = json.loads(self._exactly(length, deadline))
            if not isinstance(message, dict):
                raise BadMessage("a message must be a JSON object")
        except (OSError, ValueError, RecursionError) as error:
            for fd in fds:
                os.close(fd)
            if isinstance(error, ConnectionResetError):
                raise Closed(str(error)) from error
            if isinstance(error, OSError):
                raise
            raise BadMessage(str(error)) from error
        return message, fds

    def _exactly(self, n: int, deadline: float | None) -> bytes:
        parts = []
        while n:
            if deadline is not None:  # bytes that drip in do not put it off
                self.sock.settimeout(max(deadline - time.monotonic(), 1e-3))
            part = self.sock.recv(min(n, 1 << 20))
            if not part:
                raise Closed("end of stream")
            parts.append(part)
            n -= len(part)
            if n and deadline is not None and time.monotonic() > deadline:
                raise TimeoutError("an incomplete message")
        return b"".join(parts)
