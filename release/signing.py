"""Checksums of a release, and their signature by an SSH key. Source: docs/decisions/0032-signatures-of-releases.md"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from release.state import ROOT, ReleaseError

#: The file of checksums, and its signature.
SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"

#: Whoever may sign a release: the file that `ssh-keygen -Y verify -f` reads.
SIGNERS = ROOT / "release" / "allowed_signers"

#: ssh-keygen's name for what is signed: a signature of something else is not taken for one of a release.
NAMESPACE = "saltern-release"


def checksums(directory: Path) -> str:
    """Return the lines of SHA256SUMS for all files of a release, as `sha256sum -c` reads them. Raises OSError."""
    rows = []
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.name not in (SUMS, SIGNATURE):
            with path.open("rb") as file:
                rows.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    return "".join(rows)


def sign(directory: Path, key: Path, signers: Path = SIGNERS) -> str:
    """Sign SHA256SUMS with an SSH key (the private key, or the public one of a key in an agent), and verify the signature as a
    user does. Return the signer's name. Raises ReleaseError, also for a key that ``signers`` does not name.
    """
    sums = directory / SUMS
    (directory / SIGNATURE).unlink(missing_ok=True)
    _ssh_keygen("-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(sums))
    return verify(directory, signers)


def verify(directory: Path, signers: Path = SIGNERS) -> str:
    """Return the name of who signed SHA256SUMS. Raises ReleaseError where nobody of ``signers`` did."""
    signature = str(directory / SIGNATURE)
    names = _ssh_keygen("-Y", "find-principals", "-n", NAMESPACE, "-f", str(signers), "-s", signature).split()
    if not names:
        raise ReleaseError(f"{SIGNATURE} is by no key of {signers}: add the key's line there, and commit it")
    words = ("-Y", "verify", "-n", NAMESPACE, "-f", str(signers), "-I", names[0], "-s", signature)
    _ssh_keygen(*words, standard_input=(directory / SUMS).read_bytes())
    return names[0]


def _ssh_keygen(*words: str, standard_input: bytes | None = None) -> str:
    try:
        done = subprocess.run(["ssh-keygen", *words], input=standard_input, capture_output=True, check=False)
    except FileNotFoundError:
        raise ReleaseError("there is no ssh-keygen: install OpenSSH 8.2 or newer") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ReleaseError(f"ssh-keygen {words[1]}: {said or 'no key of ' + str(words[5]) + ' fits'}")
    return done.stdout.decode()
