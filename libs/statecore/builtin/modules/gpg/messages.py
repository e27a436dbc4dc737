"""Functions of ``gpg`` for messages: sign, encrypt, decrypt."""

from __future__ import annotations

import logging
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.gpg_program import Gpg, GpgOutput, passphrase_of

log = logging.getLogger(__name__)

#: Word of a status line -> python-gnupg's name of the failure, which Salt shows.
_FAILURES = {
    "BAD_PASSPHRASE": "bad passphrase",
    "MISSING_PASSPHRASE": "missing passphrase",
    "INV_RECP": "invalid recipient",
    "INV_SGNR": "invalid signer",
    "NO_SECKEY": "decryption failed",
    "DECRYPTION_FAILED": "decryption failed",
    "NODATA": "no data was provided",
}


def sign(
    ctx: Context,
    user: str | None = None,
    keyid: str | None = None,
    text: str | None = None,
    filename: str | None = None,
    output: str | None = None,
    use_passphrase: bool = False,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> str:
    """Return a text, or the content of a file of the host, with a clear signature around it. Raise CommandError with
    gpg's error output if gpg cannot sign.

    keyid
        the key that signs; default: the user's first one
    output
        file of the host to which the signed content of ``filename`` is written, too
    use_passphrase
        True: the secret key needs the passphrase of the pillar

    CLI Example:

        salt '*' gpg.sign text='Hello there. How are you?'
    """
    passphrase = passphrase_of(ctx, use_passphrase)
    data = _data(ctx, text, filename)
    words = ["--armor", *(["--default-key", keyid] if keyid else []), "--clearsign"]
    result = Gpg.of(ctx, user, gnupghome, keyring).run(words, data, passphrase)
    if result.retcode or not result.stdout:
        raise CommandError(f"gpg could not sign: {result.stderr.strip()}")
    if output and filename:
        ctx.host.path(output).write_text(result.stdout, "utf-8")
    return result.stdout


def encrypt(
    ctx: Context,
    user: str | None = None,
    recipients: object = None,
    text: str | None = None,
    filename: str | None = None,
    output: str | None = None,
    sign: object = None,
    use_passphrase: bool = False,
    always_trust: bool = False,
    gnupghome: str | None = None,
    bare: bool = False,
    keyring: str | None = None,
) -> dict[str, Any] | str | bool:
    """Encrypt a text or a file of the host. Return the armored message as ``comment`` of a map with ``res``; if
    ``res`` is False, ``comment`` is the reason.

    recipients
        list of ids, fingerprints or addresses, or text with commas
    output
        file of the host to which the message is written instead
    sign
        True, or the id of the key that signs
    always_trust
        True: also encrypt to keys whose owner is not trusted
    bare
        True: return only the message, False on failure

    CLI Example:

        salt '*' gpg.encrypt text='Hello there.  How are you?' recipients=ann@example.com
    """
    passphrase = passphrase_of(ctx, bool(sign) and use_passphrase)
    data = _data(ctx, text, filename)
    named = (
        recipients.split(",")
        if isinstance(recipients, str)
        else [str(each) for each in recipients]
        if isinstance(recipients, list)
        else []
    )
    words = ["--armor", *(word for each in named for word in ("--recipient", each.strip()))]
    words += ["--trust-model", "always"] if always_trust else []
    words += ["--sign"] if sign else []
    words += ["--default-key", str(sign)] if sign and sign is not True else []
    words += ["--output", output] if output else []
    result = Gpg.of(ctx, user, gnupghome, keyring).run([*words, "--encrypt"], data, passphrase)
    good = result.has("END_ENCRYPTION") and not result.retcode
    return _answer(result, good, "Encrypted", "encryption failed", output, bare=bare)


def decrypt(
    ctx: Context,
    user: str | None = None,
    text: str | None = None,
    filename: str | None = None,
    output: str | None = None,
    use_passphrase: bool = False,
    gnupghome: str | None = None,
    bare: bool = False,
    keyring: str | None = None,
) -> dict[str, Any] | str | bool:
    """Decrypt a message, given as text or as a file of the host. Return its content as ``comment`` of a map with
    ``res``; if ``res`` is False, ``comment`` is the reason.

    output
        file of the host to which the content is written instead
    bare
        True: return only the content, False on failure
    use_passphrase
        True: the secret key needs the passphrase of the pillar

    CLI Example:

        salt '*' gpg.decrypt filename=/srv/secret.asc
    """
    passphrase = passphrase_of(ctx, use_passphrase)
    data = _data(ctx, text, filename)
    words = [*(["--output", output] if output else []), "--decrypt"]
    result = Gpg.of(ctx, user, gnupghome, keyring).run(words, data, passphrase)
    good = result.has("DECRYPTION_OKAY") and not result.retcode
    return _answer(result, good, "Decrypted", "decryption failed", output, bare=bare)


def _data(ctx: Context, text: str | None, filename: str | None) -> bytes:
    if text:
        return text.encode()
    if not filename:
        raise InvocationError("filename or text must be passed.")
    try:
        return ctx.host.path(filename).read_bytes()
    except OSError as error:
        raise CommandError(f"{filename}: {error.strerror}") from error


def _answer(
    result: GpgOutput, good: bool, done: str, failure: str, output: str | None, *, bare: bool
) -> dict[str, Any] | str | bool:
    if good:
        text = result.stdout
        return (
            text if bare else {"res": True, "comment": f"{done} data has been written to {output}" if output else text}
        )
    log.error("gpg: %s", result.stderr)
    if bare:
        return False
    reason = next((text for word, text in _FAILURES.items() if result.has(word)), failure)
    return {"res": False, "comment": f"{reason}.\nPlease check the salt-minion log."}
