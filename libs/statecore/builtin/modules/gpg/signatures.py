"""OpenPGP signatures: the function ``verify`` of ``gpg``, with the minion's own program gpg."""

from __future__ import annotations

from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import openpgp_signatures


def verify(
    ctx: Context,
    text: str | None = None,
    user: str | None = None,
    filename: str | None = None,
    gnupghome: str | None = None,
    signature: str | None = None,
    trustmodel: str | None = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: str | None = None,
) -> dict[str, object]:
    """Verify the OpenPGP signatures of a text or of a file of the host. Return a map with ``res`` (True if they are
    good), ``message``, and username, key_id and trust_level of the signer; with ``signed_by_any`` or
    ``signed_by_all`` a list ``signatures`` of such maps instead.

    signature
        file with detached signatures; without it, the text or file contains its own signature
    user
        user whose keys are used; ``salt``: the keys in the minion's ``gpg_keydir``
    gnupghome
        gpg's home directory
    keyring
        file of public keys; no other keys are used
    signed_by_any, signed_by_all
        fingerprint or list of fingerprints: at least one, or every one, must have signed
    trustmodel
        gpg's trust model; signatures of keys that are not trusted count as well

    CLI Example:

        salt '*' gpg.verify filename=/srv/app.tar.gz signature=/srv/app.tar.gz.asc
    """
    if trustmodel and trustmodel not in openpgp_signatures.TRUST_MODELS:
        models = ", ".join(openpgp_signatures.TRUST_MODELS)
        return {"res": False, "message": f"Invalid trustmodel defined: {trustmodel}. Use one of: {models}"}
    if not (text or filename):
        raise InvocationError("filename or text must be passed.")
    signed: bytes | Path = text.encode() if text else ctx.host.path(str(filename))
    if isinstance(signed, Path) and not signed.is_file():
        raise CommandError(f"{filename} is not a file")
    signatures = openpgp_signatures.signatures_of(
        signed,
        None if signature is None else ctx.host.path(str(signature)),
        home=_home(ctx, user, gnupghome),
        keyring=None if keyring is None else ctx.host.path(str(keyring)),
        trust_model=trustmodel,
    )
    any_of, all_of = _names(signed_by_any), _names(signed_by_all)
    verdict = openpgp_signatures.verdict_of(signatures, any_of, all_of)
    answer: dict[str, object] = {"res": verdict.good, "message": verdict.message}
    if any_of or all_of:
        return answer | {
            "signatures": [
                {key: getattr(each, key) for key in ("username", "key_id", "fingerprint", "trust_level", "status")}
                for each in signatures
            ]
        }
    last = next((each for each in reversed(signatures) if each.good), None)
    if verdict.good and last is not None:
        answer |= {"username": last.username, "key_id": last.key_id, "trust_level": last.trust_level}
    return answer


def _home(ctx: Context, user: str | None, gnupghome: str | None) -> Path | None:
    """Return the path of the home directory for the program gpg; None for the default of the user who runs the
    minion. Raise CommandError for an unknown user.
    """
    if gnupghome is not None:
        return ctx.host.path(gnupghome)
    if user == "salt":
        return Path(
            str(
                ctx.opts.get("gpg_keydir")
                or Path(str(ctx.opts.get("conf_file") or "/etc/salt/minion")).parent / "gpgkeys"
            )
        )
    if user is not None:
        account = ctx.call("user.info", user)
        if not account:
            raise CommandError(f"User {user} does not exist")
        return ctx.host.path(f"{account['home']}/.gnupg")
    return ctx.host.path("/root/.gnupg") if ctx.host.mounted else None


def _names(given: object) -> list[str]:
    return [str(each) for each in (given if isinstance(given, list) else [given]) if each]
