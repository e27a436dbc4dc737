"""``nacl``: keys, boxes and files. The oracle has no PyNaCl; Salt's words are those of salt/utils/nacl.py."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import CommandError

nacl = pytest.importorskip("nacl.public")

ONE, OTHER = (base64.b64encode(bytes([each]) * 32).decode() for each in (1, 2))
PUBLIC = base64.b64encode(bytes(nacl.PrivateKey(b"\1" * 32).public_key)).decode()


def test_keys_are_made(plain: Any) -> None:
    pair = plain.call("nacl.keygen")
    sealed = plain.call("nacl.enc", "word", pk=pair["pk"])
    assert plain.call("nacl.dec", sealed, sk=pair["sk"]) == "word"


@pytest.mark.parametrize(
    ("there", "args", "said"),
    [
        ((), {"sk_file": "/k"}, "saved sk_file:/k  pk_file: /k.pub"),
        ((), {"keyfile": "/k"}, "saved sk_file:/k  pk_file: /k.pub"),
        ((), {"sk_file": "/k", "pk_file": "/p"}, "saved sk_file:/k  pk_file: /p"),
        (("k",), {"sk_file": "/k"}, "saved pk_file: /k.pub"),
        (("k", "k.pub"), {"sk_file": "/k"}, CommandError("sk_file:/k and pk_file:/k.pub already exist.")),
        ((), {"pk_file": "/p"}, CommandError("sk_file: Must be set inorder to generate a public key.")),
        ((), {"sk_file": "/none/k"}, CommandError("/none/k")),
    ],
)
def test_keys_are_written(plain: Any, there: tuple[str, ...], args: dict[str, str], said: Any) -> None:
    for name in there:
        (plain.root / name).write_text(ONE)
    if isinstance(said, CommandError):
        with pytest.raises(CommandError, match=str(said)):
            plain.call("nacl.keygen", **args)
        return
    assert plain.call("nacl.keygen", **args) == said
    secret = plain.root / "k"
    if not there:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    public = args.get("pk_file", "/k.pub")
    sealed = plain.call("nacl.sealedbox_encrypt", "word", pk_file=public)
    assert plain.call("nacl.sealedbox_decrypt", sealed, sk_file="/k") == "word"


@pytest.mark.parametrize("how", ["arguments", "files", "configuration", "usual files"])
@pytest.mark.parametrize("box", ["sealedbox", "secretbox"])
def test_boxes(plain: Any, tmp_path: Path, how: str, box: str) -> None:
    (plain.root / "sk").write_text(ONE + "\n")
    (plain.root / "pk").write_text(PUBLIC)
    pki = tmp_path / "pki/master"
    pki.mkdir(parents=True)
    given: dict[str, str] = {}
    if how == "arguments":
        given = {"sk": ONE, "pk": PUBLIC}
    elif how == "files":
        given = {"sk_file": "/sk", "pk_file": "/pk"}
    elif how == "configuration":
        plain.opts["nacl.config"] = {"box_type": box, "sk": ONE, "pk": PUBLIC}
    else:
        (pki / "nacl").write_text(ONE)
        (pki / "nacl.pub").write_text(PUBLIC)
        plain.opts["pki_dir"] = str(pki.parent)
    named = {} if how == "configuration" else {"box_type": box}
    closed = plain.call("nacl.enc", "grün", **given, **named)
    assert closed != plain.call("nacl.enc", "grün", **given, **named)
    assert plain.call("nacl.dec", closed, **given, **named) == "grün"
    assert plain.call(f"nacl.{box}_decrypt", closed, **given) == "grün"


def test_old_names_mean_a_secret_box(plain: Any) -> None:
    closed = plain.call("nacl.enc", "word", key=ONE)
    assert plain.call("nacl.secretbox_decrypt", closed, sk=ONE) == plain.call("nacl.dec", closed, key=ONE) == "word"
    assert plain.call("nacl.dec", None, box_type="secretbox") is None


def test_files(plain: Any) -> None:
    (plain.root / "plain").write_text("word\n")
    assert plain.call("nacl.enc_file", "/plain", out="/closed", pk=PUBLIC) == "Wrote: /closed"
    assert plain.call("nacl.dec_file", "/closed", sk=ONE) == "word\n"
    assert plain.call("nacl.dec_file", "/closed", out="/again", sk=ONE) == "Wrote: /again"
    assert (plain.root / "again").read_text() == "word\n"
    with pytest.raises(CommandError, match=r"file:/again already exist\."):
        plain.call("nacl.dec_file", "/closed", out="/again", sk=ONE)
    with pytest.raises(CommandError, match="/none"):
        plain.call("nacl.enc_file", "/none", pk=PUBLIC)


@pytest.mark.parametrize(
    ("function", "args", "said"),
    [
        ("enc", {"data": "x"}, "no pubkey or pk_file found"),
        ("dec", {"data": "x"}, "no key or sk_file found"),
        ("enc", {"data": "x", "pk": "short"}, "not base64"),
        ("enc", {"data": "x", "pk": "c2hvcnQ="}, "pk: "),
        ("enc", {"data": "x", "box_type": "wooden"}, "box_type is sealedbox or secretbox, not 'wooden'"),
        ("dec", {"data": "c2hvcnQ=", "sk": ONE}, "data: "),
        ("secretbox_decrypt", {"data": "c2hvcnQ=", "sk": OTHER}, "data: "),
    ],
)
def test_what_cannot_be_done(plain: Any, function: str, args: dict[str, str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        plain.call(f"nacl.{function}", **args)
