"""Sends requests of a minion to its master's port 4506 and signs in; signs in again after the master's keys changed.

Source: docs/protocol.md#sign-in
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import logging
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TypeVar

import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.reading import ConfigError
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import address
from saltwire.busy import Busy, check_busy
from saltwire.crypticle import Crypticle
from saltwire.envelope import ClientSession
from saltwire.errors import AuthenticationError, NonceError, OwnFault, PeerFault, SignatureError
from saltwire.handshake import Answer, Credentials, Outcome, SignIn
from saltwire.keys import MasterPublicKeys
from saltwire.pillar_transfer import open_pillar
from saltwire.zmq import NoAnswer, RequestSocket

_LOG = logging.getLogger("saltern.minion")

Result = TypeVar("Result")

#: Request of the kernel: the IPv4 address of an interface, see netdevice(7).
_SIOCGIFADDR = 0x8915

#: Seconds before a request is repeated on the same connection: a killed reqserver forgot it, a slow one answers once.
_RESEND_AFTER = (4.0, 8.0, 16.0)


class ChannelError(Exception):
    """Raised when the master does not answer, or when its answer violates the protocol.

    The message names the request and the cause.
    """


class Silence:
    """Decides how long the requests of a process wait for a master that does not answer. This class never ends a wait
    before the time in the options; subclasses may.
    """

    def given_up(self) -> bool:
        """Return True if the current request must stop waiting for its answer. Called several times a second while a
        request has no answer.
        """
        return False

    def lasted(self) -> None:
        """Called when a request ended without an answer. Does nothing in this class."""


def endpoint(options: MinionOptions, source_port: int = 0) -> str:
    """Return the ZeroMQ endpoint for requests to ``options.master``, as "tcp://host:port", or "tcp://source:port;host:port" if an
    option names the address from which the minion connects.

    ``source_port``: port of that address; 0: any.
    Raise ConfigError for an invalid address.
    """
    host, port = address(str(options.master), options.master_port)
    return f"tcp://{source_of(options, source_port)}{host}:{port}"


def source_of(options: MinionOptions, port: int = 0) -> str:
    """Return "ADDRESS:PORT;", the part of a ZeroMQ endpoint from which the minion connects; "" for the system's choice.

    ``port``: 0 for any. As in Salt, an interface that is missing or has no address is logged and ignored.
    """
    found = options.source_address
    if options.source_interface_name:
        found = _address_of(options.source_interface_name)
        if not found:
            said = "source_interface_name: %s is no interface with an IPv4 address; the system's routes decide"
            _LOG.warning(said, options.source_interface_name)
    return f"{f'[{found}]' if ':' in found else found}:{port};" if found else ""


def _address_of(interface: str) -> str:
    """Return the IPv4 address of a network interface; "" if there is no such interface, or none with an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, contextlib.suppress(OSError):
        answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        return socket.inet_ntoa(answer[20:24])
    return ""


def sign_in_once(
    socket: RequestSocket,
    options: MinionOptions,
    identity: Identity,
    grains: Mapping[str, object],
    waits: Iterator[float] | None = None,
    pause: Callable[[float], None] = time.sleep,
    given_up: Callable[[], bool] = lambda: False,
) -> Answer:
    """Send one sign-in, up to ``auth_tries`` times, and return the master's answer. Store the key of a master that accepts.

    A missing answer is Outcome.BAD. ``waits``: seconds before each repetition; an iterator lets the caller act in between.
    ``pause``: called with the seconds to wait if the master is busy. ``given_up``: returns True to stop waiting for an answer.
    Raise ConfigError for options that allow no sign-in.
    """
    try:
        machine = SignIn(
            identity.id,
            identity.private,
            identity.master(),
            enc_algo=options.encryption_algorithm,
            sig_algo=options.signing_algorithm,
            master_finger=options.master_finger,
            hash_type=options.hash_type,
            open_mode=options.open_mode,
            autosign_grains={name: grains.get(name) for name in options.autosign_grains},
            token=False,
        )
    except OwnFault as error:
        raise ConfigError(str(error)) from error
    found: list[Answer] = []

    def ours(reply: bytes) -> bool:
        """Return whether the reply answers this sign-in; replies to other requests on the socket are skipped."""
        check_busy(reply)
        answer = machine.feed(reply)
        if answer.outcome is Outcome.BAD:
            refused.append(answer)
            return False
        found.append(answer)
        return True

    refused: list[Answer] = []
    try:
        each = iter([float(options.auth_timeout)] * options.auth_tries)
        _patiently(lambda: socket.ask(machine.request(), waits or each, ours, given_up), pause)
    except NoAnswer as error:
        return refused[-1] if refused else Answer(Outcome.BAD, str(error))
    answer = found[0]
    if answer.credentials is not None:
        identity.trust(answer.credentials.master_pub)
    return answer


def _patiently(ask: Callable[[], object], pause: Callable[[float], None] = time.sleep) -> None:
    """Call ``ask``; call it again after a pause while it raises Busy (the master is overloaded). Other exceptions of
    ``ask``, such as NoAnswer, are raised.
    """
    while True:
        try:
            ask()
            return
        except Busy as busy:
            # The random factor keeps minions that were refused together from coming back together.
            pause(busy.retry_after * random.uniform(1.0, 2.0))


def session_of(options: MinionOptions, identity: Identity, credentials: Credentials) -> ClientSession:
    """Return the session that encrypts requests to the master. A master that offers no session key gets messages of version 2.

    Source: docs/protocol.md#message-versions
    """
    version = 3 if credentials.session else 2
    return ClientSession(
        identity.id,
        Crypticle(credentials.session or credentials.aes),
        identity.private,
        options.encryption_algorithm,
        options.signing_algorithm,
        version,
    )


class Channel:
    """A connection of one process to the master's port 4506. Use it in a ``with`` block, whose end closes it."""

    def __init__(
        self,
        options: MinionOptions,
        identity: Identity,
        credentials: Credentials | None,
        silence: Silence | None = None,
    ) -> None:
        """Prepare a connection to the master.

        Without ``credentials`` the first request signs in. ``silence`` decides how long requests wait for a master
        that does not answer.
        """
        self._options = options
        self._silence = silence or Silence()
        # The key pair may have been replaced since the zygote, from which this process was forked, was started.
        identity.reread()
        self._identity = identity
        self.credentials = credentials
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = RequestSocket(self._context, endpoint(options))
        self._session = session_of(options, identity, credentials) if credentials else None

    def __enter__(self) -> Channel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the master."""
        self._socket.close()
        self._context.term()

    def ask(self, load: Mapping[str, object], *, raw: bool = False, once: bool = False) -> object:
        """Send a request, a map with ``cmd``, to the master over port 4506, and return the decrypted value of the reply.

        ``raw``: texts stay bytes. ``once``: do not repeat the request. Raise ChannelError if no valid reply arrives.
        """

        def attempt(session: ClientSession) -> object:
            payload, nonce = session.seal(load, time.time())
            return self._opened(payload, lambda reply: session.open(reply, nonce, raw=raw), once=once)

        return self._with_session(str(load.get("cmd")), attempt)

    def pillar(
        self,
        grains: Mapping[str, object],
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None = None,
        *,
        clean_cache: bool = False,
    ) -> dict[str, object]:
        """Return the pillar of this minion, compiled by the master. ``clean_cache``: the master ignores its cached pillar.

        Raise ChannelError.
        """
        load: dict[str, object] = {
            "cmd": "_pillar",
            "id": self._identity.id,
            "grains": dict(grains),
            "saltenv": saltenv,
            "pillarenv": pillarenv,
            "pillar_override": dict(override or {}),
            "extra_minion_data": {},
            "ver": "2",
        }
        load |= {"ext": dict(on_demand)} if on_demand else {}
        load |= {"clean_cache": True} if clean_cache else {}

        def attempt(session: ClientSession) -> dict[str, object]:
            payload, nonce = session.seal(load, time.time())
            return self._opened(payload, lambda reply: self._open_pillar(reply, nonce))

        return self._with_session("_pillar", attempt)

    def _open_pillar(self, reply: bytes, nonce: str) -> dict[str, object]:
        assert self.credentials is not None
        try:
            return open_pillar(
                reply,
                private_key=self._identity.private,
                master_pub=MasterPublicKeys.from_pem(self.credentials.master_pub),
                nonce=nonce,
                enc_algo=self._options.encryption_algorithm,
                sig_algo=self._options.signing_algorithm,
            )
        except (NonceError, AuthenticationError):
            raise
        except (PeerFault, SignatureError) as error:
            # A reply that is no pillar ("bad load", {}) means: sign in again. See docs/protocol.md#pillar-transfer.
            raise AuthenticationError(str(error)) from error

    def _with_session(self, cmd: str, attempt: Callable[[ClientSession], Result]) -> Result:
        """Call ``attempt`` with the current session (signing in first if there is none) and return its value.

        If the master rejects the session, sign in and try once more. Raise ChannelError.
        """
        started = time.monotonic()
        _LOG.debug("request %s to %s", cmd, self._socket.endpoint)
        try:
            for last in (False, True):
                session = self._session or self.sign_in()
                try:
                    found = attempt(session)
                    _LOG.debug("answer to %s after %.1f ms", cmd, (time.monotonic() - started) * 1000)
                    return found
                except AuthenticationError as error:
                    if last:
                        raise ChannelError(f"the master refuses {cmd} even after a new sign-in: {error}") from error
                    self._session = None
        except NoAnswer as error:
            self._silence.lasted()
            raise ChannelError(f"{cmd}: {error}") from error
        except PeerFault as error:
            raise ChannelError(f"{cmd}: the master's answer violates the protocol: {error}") from error
        raise AssertionError("unreachable")

    def sign_in(self) -> ClientSession:
        """Sign in at the master, keep the new credentials, and return the session that encrypts requests.

        Raise ChannelError if the master does not accept the minion or does not answer.
        """
        _LOG.debug("signing in at %s as %s", self._socket.endpoint, self._identity.id)
        answer = sign_in_once(self._socket, self._options, self._identity, {}, given_up=self._silence.given_up)
        if answer.credentials is None:
            if answer.outcome is Outcome.BAD:
                self._silence.lasted()
            raise ChannelError(f"no sign-in at {self._socket.endpoint}: {answer.reason}")
        self.credentials = answer.credentials
        self._session = session_of(self._options, self._identity, answer.credentials)
        return self._session

    def _opened(self, payload: bytes, open_reply: Callable[[bytes], Result], *, once: bool = False) -> Result:
        """Send an encrypted request, wait for its reply and return the decrypted value. Replies to earlier requests are skipped."""
        box: list[Result] = []

        def wanted(reply: bytes) -> bool:
            check_busy(reply)
            with contextlib.suppress(NonceError):
                box.append(open_reply(reply))
                return True
            return False

        waits = self._once() if once else self._waits()
        _patiently(lambda: self._socket.ask(payload, waits, wanted, self._silence.given_up, again=not once))
        return box[0]

    def _waits(self) -> Iterator[float]:
        """Yield the seconds before each repetition of a request; in sum request_channel_timeout * request_channel_tries."""
        ends = time.monotonic() + self._options.request_channel_timeout * self._options.request_channel_tries
        for wait in itertools.chain(_RESEND_AFTER, itertools.repeat(float(self._options.request_channel_timeout))):
            left = ends - time.monotonic()
            if left <= 0:
                return
            yield min(wait * random.uniform(0.9, 1.1), left)

    def _once(self) -> Iterator[float]:
        """Yield the seconds that remain to wait for the answer to a request that must not be repeated. Stop when
        request_channel_timeout * request_channel_tries seconds are over.

        The caller sends the request again only if a busy master rejected it.
        """
        ends = time.monotonic() + self._options.request_channel_timeout * self._options.request_channel_tries
        while (left := ends - time.monotonic()) > 0:
            yield left
