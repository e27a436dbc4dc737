"""The operator's side of port 4507: one request, one answer, over CurveZMQ.

A request is a msgpack map ``{"cmd": ..., fields}``; the answer is ``{"ok": value}`` or
``{"error": {"name": ..., "message": ...}}``. Frames are ``[b"", id, payload]`` in both directions. ``id`` binds an answer to
its request: a late answer to an abandoned request is not taken for the answer to the next request.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import msgpack
import zmq

from saltern.kit.config.master import ClientOptions, key_directory
from saltern.kit.links.answers import (
    JobPage,
    JobStatus,
    MinionAnswer,
    PublishAnswer,
    RunnerAnswer,
    TargetAnswer,
    WheelCall,
    answer_fault,
)
from saltern.kit.links.sockets import FOLLOW_SECONDS, LinkConnection, LinkKeys
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from statecore.model import redaction
else:
    redaction = lazy_module("statecore.model.redaction")

_LOG = logging.getLogger("saltern.links")

#: Seconds to wait for the master's answer. It normally answers in milliseconds; a longer wait means an outage.
CONTROL_PATIENCE = 10.0

#: Seconds after which a request is sent again, because a killed reqserver has lost it. Commands are idempotent.
RESEND_AFTER = 5.0


class ControlError(Exception):
    """Raised when the master refuses a request of an operator's command.

    ``name`` is a fixed word for programs ("AuthorizationError", "TargetError", ...).
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class ControlTimeout(Exception):
    """Raised when the master does not answer an operator's request in time."""

    def __init__(self, endpoint: str, seconds: float) -> None:
        super().__init__(
            f"no answer from the master at {endpoint} within {seconds:g} s; is the reqserver running, "
            "and is this client's key among those it knows (saltern keygen)?"
        )
        self.endpoint = endpoint
        self.seconds = seconds


class ControlClient:
    """A client for the master's port 4507, which sends one request at a time. It must not be used from two threads."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        options: ClientOptions,
        keys: LinkKeys,
        *,
        on_behalf: Mapping[str, object] | None = None,
    ) -> None:
        """Connect to the master. ``on_behalf``: of a runner, the sender for whom its requests are decided."""
        self._on_behalf: dict[str, object] = {} if on_behalf is None else {"on_behalf": on_behalf}
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._connection = LinkConnection(self._socket, "control", options, keys)
        self._ids = itertools.count(1)
        #: Token of the user for whom requests act (external_auth); empty: they have the rights of the key.
        self.token = ""

    @property
    def endpoint(self) -> str:
        """Return the address of the master's port 4507 as text, ``tcp://host:port``."""
        return self._connection.endpoint

    @overload
    def call(self, cmd: Literal["publish"], *, timeout: float | None = ..., **fields: object) -> PublishAnswer: ...
    @overload
    def call(self, cmd: Literal["targets"], *, timeout: float | None = ..., **fields: object) -> TargetAnswer: ...
    @overload
    def call(self, cmd: Literal["runner"], *, timeout: float | None = ..., **fields: object) -> RunnerAnswer: ...
    @overload
    def call(
        self, cmd: Literal["known"], *, timeout: float | None = ..., **fields: object
    ) -> dict[str, MinionAnswer]: ...
    @overload
    def call(
        self, cmd: Literal["job_returns"], *, timeout: float | None = ..., **fields: object
    ) -> dict[str, dict[str, object]]: ...
    @overload
    def call(self, cmd: Literal["job_status"], *, timeout: float | None = ..., **fields: object) -> JobStatus: ...
    @overload
    def call(self, cmd: Literal["failed_of"], *, timeout: float | None = ..., **fields: object) -> dict[str, int]: ...
    @overload
    def call(self, cmd: Literal["find_jobs"], *, timeout: float | None = ..., **fields: object) -> JobPage: ...
    @overload
    def call(self, cmd: str, *, timeout: float | None = ..., **fields: object) -> object: ...

    def call(self, cmd: str, *, timeout: float | None = None, **fields: object) -> object:
        """Send the master command ``cmd`` with its fields and return the value of the master's answer.

        ``timeout`` is in seconds, 30 by default. Raises ControlError if the master refuses, and ControlTimeout.
        """
        seconds = 30.0 if timeout is None else timeout
        request = b"%d-%d" % (os.getpid(), next(self._ids))
        payload = packed_request(
            {"cmd": cmd, **fields, **self._on_behalf, **({"token": self.token} if self.token else {})}
        )
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("request %s to %s: %s", cmd, self.endpoint, _shown(cmd, fields))
        started = time.monotonic()
        deadline = time.monotonic() + seconds
        self._connection.follow()
        while (left := deadline - time.monotonic()) > 0:
            self._send([b"", request, payload])
            answer = self._receive(request, min(left, RESEND_AFTER))
            if answer is not None:
                took = (time.monotonic() - started) * 1000
                _LOG.debug("answer to %s: %d bytes after %.1f ms", cmd, len(answer), took)
                return value_of_answer(answer, cmd)
            _LOG.debug("no answer to %s yet; it is sent again", cmd)
        raise ControlTimeout(self.endpoint, seconds)

    def close(self) -> None:
        """Close the connection to port 4507 without waiting for outstanding answers."""
        self._connection.close()

    def _send(self, frames: list[bytes]) -> None:
        """Send the frames of a request to the master.

        libzmq closes a connection for good if the master refuses the client's key. In that case a new connection is made first.
        Nothing is sent if that is refused as well; ``call`` sends the request again.
        """
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            # Connect again: the master may know the key by now. If not, ControlTimeout names the cause. On a busy machine it may
            # have refused the new connection, too, before anything is sent on it.
            self._connection.reconnect()
            with contextlib.suppress(zmq.Again):
                self._socket.send_multipart(frames, zmq.NOBLOCK)

    def _receive(self, request: bytes, seconds: float) -> bytes | None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._socket.poll(int(min(left, FOLLOW_SECONDS) * 1000) + 1):
                if self._connection.follow():
                    # The request went to a server that is lost, or had the other key; commands are idempotent.
                    return None
                continue
            frames = self._socket.recv_multipart()
            if len(frames) == 3 and frames[1] == request:
                return frames[2]
        return None


def _shown(cmd: str, fields: Mapping[str, object]) -> object:
    """Return the fields of an operator's request as a map for the log: with ``**********`` for secret arguments, and
    without the bytes of files.
    """
    fun = fields.get("fun", cmd)
    shown = {name: redaction.shown_arguments(fun, value) if name == "arg" else value for name, value in fields.items()}
    masked = redaction.shown_arguments(
        "", [{name: value for name, value in shown.items() if not isinstance(value, bytes)}]
    )
    return masked[0] if isinstance(masked, list) else masked


def wheel_functions(control: ControlClient, timeout: float | None = None) -> WheelCall:
    """Return a function that calls wheel functions over a client for port 4507.

    ``timeout``: seconds that the master has to answer; None: 30.
    """

    def call(fun: str, **kwarg: object) -> Any:
        return control.call("wheel", timeout=timeout, fun=fun, kwarg=kwarg)

    return call


def connect_control(
    options: ClientOptions, *, config_dir: str | None = None, context: zmq.Context[zmq.Socket[bytes]] | None = None
) -> ControlClient:
    """Return a client for port 4507 with the keys of the operators' commands. Raises ConfigError if keys are missing."""
    keys = LinkKeys.load(key_directory(options, "cli", config_dir))
    return ControlClient(context or zmq.Context.instance(), options, keys)


def ok(value: object) -> bytes:
    """Return the msgpack bytes ``{"ok": value}``, with which the master answers an operator's request."""
    answer: bytes = msgpack.packb({"ok": value}, default=str)
    return answer


def refused(name: str, message: str) -> bytes:
    """Return the msgpack bytes ``{"error": {name, message}}``, with which the master refuses an operator's request."""
    answer: bytes = msgpack.packb({"error": {"name": name, "message": message}})
    return answer


def packed_request(fields: Mapping[str, object]) -> bytes:
    """Return a request to the master's port 4507 as msgpack bytes. Raises ControlError for text that is not UTF-8."""
    try:
        try:
            payload: bytes = msgpack.packb(fields)
        except OverflowError:
            payload = msgpack.packb(_wide_as_text(fields))
    except UnicodeEncodeError as error:
        # A command-line argument is not UTF-8.
        raise ControlError("InvocationError", f"{error.object!r} cannot be sent: it is not UTF-8") from error
    return payload


def _wide_as_text(value: object) -> object:
    """Return the value with each integer beyond msgpack's range as decimal text, the form in which minions get it."""
    if isinstance(value, Mapping):
        return {name: _wide_as_text(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_wide_as_text(each) for each in value]
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


def value_of_answer(answer: bytes, cmd: str = "") -> object:
    """Return the value in the master's answer (bytes) to a request on port 4507.

    Raises ControlError if the master refused the request, and if the answer is malformed (AnswerError): it is no msgpack
    map with ``ok`` or ``error``, or the value has not the type that ``answers.ANSWERS`` has for the command ``cmd``.
    """
    try:
        reply = msgpack.unpackb(answer, strict_map_key=False)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise ControlError("AnswerError", f"the master's answer to {cmd} is no msgpack: {error}") from error
    refusal = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(refusal, dict):
        raise ControlError(str(refusal.get("name")), str(refusal.get("message")))
    if not isinstance(reply, dict) or "ok" not in reply:
        raise ControlError("AnswerError", f"the master's answer to {cmd} is malformed: it has neither 'ok' nor 'error'")
    if fault := answer_fault(cmd, reply["ok"]):
        raise ControlError("AnswerError", fault)
    return reply["ok"]
