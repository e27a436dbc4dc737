"""Signatures of what ``file.managed`` is to write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.places import Refused
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.file_source import Signers


def signers_of(given: dict[str, Any], *signatures: Any) -> Signers:
    """Who has to have signed, from a state's arguments. Raises Refused where nothing is said to be signed.

    signatures
        the arguments that ask for signatures
    """
    named = ("signed_by_any", "signed_by_all", "keyring", "gnupghome")
    if not any(signatures) and (idle := [argument for argument in named if given.get(argument)]):
        raise Refused(f"{', '.join(idle)}: nothing asks for a signature; signature or source_hash_sig does")
    wanted = {argument: given.get(argument) for argument in named}
    return Signers.of(**wanted, sig_backend=str(given.get("sig_backend") or "gpg"))


@dataclass(frozen=True, slots=True)
class Signing:
    """What has to be signed, and by whom."""

    #: True: the content holds its signature; else where it is.
    signature: Any
    signers: Signers
    verify_ssl: bool = True

    def check(self, ctx: Context, content: bytes | Path, saltenv: str) -> None:
        """Raises Refused where a content is not signed as it has to be."""
        if not self.signature:
            return
        try:
            if isinstance(content, Path):
                self._checked(ctx, content, saltenv)
                return
            import tempfile  # it brings random with it, and few files are signed

            # What is written is what was looked at, not what a template or a source may be by then.
            with tempfile.TemporaryDirectory(prefix="saltern-signed-") as directory:
                copy = Path(directory, "content")
                copy.write_bytes(content)
                self._checked(ctx, copy, saltenv)
        except CommandError as error:
            raise Refused(f"Failed checking new file's signature: {error}") from error
        except OSError as error:
            raise Refused(f"Failed checking new file's signature: {error.filename}: {error.strerror}") from error

    def _checked(self, ctx: Context, file: Path, saltenv: str) -> None:
        self.signers.check(ctx, file, self.signature, saltenv, verify_ssl=self.verify_ssl)
