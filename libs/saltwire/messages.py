"""Maps that travel between minion and master, as types: one TypedDict for each kind of message.

A received message is checked by hand before it gets one of these types; the types themselves check nothing at run time.
Fields that a sender may leave out are marked NotRequired. Free-form values (arguments, results, grains, pillar) are
``object``: code that reads such a value checks its type first.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class SignInLoad(TypedDict):
    """A minion's sign-in request to the master (load of the command ``_auth``), sent in clear.

    Source: docs/protocol.md#sign-in-request
    """

    cmd: Literal["_auth"]
    id: str
    nonce: str
    enc_algo: str
    sig_algo: str
    #: The minion's public key, PEM.
    pub: str
    #: A key string encrypted to the master's public key, which the master must decrypt and send back.
    token: NotRequired[bytes]
    #: Fingerprint (SHA-256) of the master's newest key that the minion knows, "" before the first contact. Only Saltern's minions
    #: send it.
    master: NotRequired[str]
    autosign_grains: NotRequired[dict[str, object]]


class SignInRefusal(TypedDict):
    """The master's signed reply to the sign-in of a minion that is not accepted. Source:
    docs/protocol.md#sign-in-reply
    """

    #: True: pending. False: refused. "full": the master has as many minions as it may have.
    ret: bool | str | None
    nonce: NotRequired[str | None]


class SignInReply(TypedDict):
    """The master's signed reply to the sign-in of an accepted minion. Source: docs/protocol.md#sign-in-reply"""

    enc: Literal["pub"]
    #: The master's public key, PEM.
    pub_key: str
    publish_port: int
    #: Number of Saltern's own minion commands that the master knows (``handshake.OWN_COMMANDS``).
    saltern: int
    #: Key string of publications, encrypted to the minion's public key.
    aes: bytes
    #: Key string of requests, encrypted to the minion's public key.
    session: bytes
    #: X9.31 signature of the SHA-256 digest of the publications' key string.
    sig: bytes
    #: The master's signature of its own public key, base64.
    pub_sig: NotRequired[str]
    #: While the master's key is replaced: the keys that it signs with, PEM, the newest first. Only Saltern's masters send it.
    master_keys: NotRequired[list[str]]
    #: The minion's token, decrypted by the master and encrypted to the minion's public key.
    token: NotRequired[bytes]
    nonce: NotRequired[str | None]


class PillarRequest(TypedDict):
    """A minion's request for its pillar (load of the command ``_pillar``). Source: docs/protocol.md#pillar-transfer"""

    cmd: Literal["_pillar"]
    id: str
    grains: dict[str, object]
    saltenv: str | None
    pillarenv: str | None
    #: Values that the minion merges over its pillar for this one request.
    pillar_override: NotRequired[dict[str, object]]
    #: On-demand external pillars.
    ext: NotRequired[dict[str, object]]
    #: True: the master compiles the pillar anew instead of taking it from ``pillar_cache``.
    clean_cache: NotRequired[bool]
    extra_minion_data: NotRequired[dict[str, object]]
    #: Version of the pillar reply that the minion understands: "2".
    ver: NotRequired[str]


class FileRequest(TypedDict):
    """A minion's request for a chunk of a file (load of the command ``_serve_file``). Source: docs/protocol.md#file-transfer"""

    cmd: Literal["_serve_file"]
    path: str
    saltenv: str
    #: Offset of the chunk in the file, bytes.
    loc: int


class FileChunk(TypedDict):
    """The master's reply with a chunk of a file (``_serve_file``). Empty data ends the file.

    Source: docs/protocol.md#file-transfer
    """

    data: bytes
    #: Path of the file in the state tree; empty when the file does not exist.
    dest: str
    #: Level of gzip compression (1 to 9); missing when the data is not compressed.
    gzip: NotRequired[int]


class Publication(TypedDict):
    """Decrypted load of a publication: a job as minions receive it. Source: docs/protocol.md#publications"""

    jid: str
    #: Name of the function, or a list of names for a job of several functions.
    fun: str | list[str]
    #: Arguments; for a job of several functions one list for each function.
    arg: list[object]
    tgt: object
    tgt_type: NotRequired[str]
    ret: NotRequired[str]
    user: NotRequired[str]
    #: Milliseconds since 1970 until which a minion may start the job late.
    replay_until: NotRequired[int]
    #: Number that rises from publication to publication; ``SerialGate`` takes it out of a received load.
    serial: NotRequired[int]


#: Load of the command ``_return``; ``return`` is a Python keyword, so this TypedDict is written as a call.
#: Source: docs/protocol.md#returns
ReturnLoad = TypedDict(
    "ReturnLoad",
    {
        "cmd": Literal["_return"],
        "id": str,
        "jid": str,
        "fun": str | list[str],
        "fun_args": list[object],
        "return": object,
        "retcode": NotRequired[int | dict[str, int]],
        "success": NotRequired[bool],
        "out": NotRequired[str],
    },
)
