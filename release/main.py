"""Builds a release into dist/VERSION: ``make release``. Source: docs/release.md#steps

    python -m release.main [--real --key KEY] [--check] [--without-images]

Dry by default: it builds everything, says what stands in the way of the release, signs nothing and makes no tag. ``--real`` refuses
a checkout that cannot be released, signs the checksums and makes the signed tag. Nothing is ever sent anywhere: the last lines name
the commands that publish. ``--check`` builds twice and compares the digests.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.build import Builder
from release.signing import SUMS, sign
from release.state import ROOT, ReleaseError, State, git, problems, read_state

#: Commands that publish a release, for whoever has the rights.
PUBLISH = """\
Publish it with your accounts (docs/release.md#publish):
  git push origin {tag}
  twine upload {directory}/*.whl
  skopeo copy oci-archive:{directory}/saltern-images-{version}-amd64.tar:saltern/NAME:{version} docker://REGISTRY/NAME:{version}
  all other files: beside the notes of the release, at the code host
"""


def differing(first: str, second: str) -> list[str]:
    """Return the names of files whose checksums differ between two SHA256SUMS, and of files that are in one only."""
    sums = [_rows(first), _rows(second)]
    return sorted(name for name in {*sums[0], *sums[1]} if sums[0].get(name) != sums[1].get(name))


def _rows(text: str) -> Mapping[str, str]:
    rows = (line.split("  ", 1) for line in text.splitlines())
    return {name: digest for digest, name in rows}


def check(state: State, supply: Path, *, images: bool) -> int:
    """Build the release twice and compare. Return 0, or 1 if a file differs."""
    sums = []
    for number in ("1", "2"):
        directory = ROOT / "build" / f"release-{number}"
        Builder(state, directory, supply=supply, work=f"release-{number}").build(images=images)
        sums.append((directory / SUMS).read_text("utf-8"))
    found = differing(*sums)
    sys.stdout.write(sums[0])
    if found:
        sys.stderr.write(
            f"release: two builds differ in {', '.join(found)}: compare build/release-1 and build/release-2\n"
        )
        return 1
    sys.stdout.write(f"Two builds of {state.release.revision[:12]} have the same {len(_rows(sums[0]))} digests.\n")
    return 0


def make_release(state: State, supply: Path, key: Path | None, *, real: bool, images: bool) -> int:
    """Build the release, and sign and tag it if ``real``. Return 0, or 1 if it cannot be released. Raises ReleaseError, OSError."""
    found = problems(state)
    for problem in found:
        sys.stderr.write(f"release: {problem}\n")
    if real and found:
        return 1
    if real and key is None:
        raise ReleaseError("KEY is not set: RELEASE=1 signs with the SSH key that it names")
    directory = ROOT / "dist" / state.release.version
    Builder(state, directory, supply=supply).build(images=images)
    sys.stdout.write((directory / SUMS).read_text("utf-8"))
    if not real or key is None:
        sys.stdout.write(f"A dry run: {directory} is not signed, and there is no tag. RELEASE=1 KEY=... does both.\n")
        return 0
    signer = sign(directory, key)
    sign_tag = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}")
    git(*sign_tag, "tag", "--sign", "--message", f"Release {state.release.version}", state.tag)
    sys.stdout.write(f"Signed by {signer}, tagged {state.tag}.\n")
    sys.stdout.write(PUBLISH.format(tag=state.tag, directory=directory, version=state.release.version))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Make or check the release. Return 0, or 1 with a message where that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--real", action="store_true", help="sign and tag; refuse a checkout that cannot be released")
    parser.add_argument("--key", type=Path, help="SSH key that signs: the private key, or the public one of an agent's")
    parser.add_argument("--check", action="store_true", help="build twice into build/ and compare the digests")
    parser.add_argument("--without-images", action="store_true", help="no images: where there is no Docker engine")
    parser.add_argument("--supply", type=Path, default=ROOT / ".supply/bin/python", help="Python with the SBOM tools")
    flags = parser.parse_args(argv)
    images = not flags.without_images
    try:
        if flags.real and not images:
            raise ReleaseError("a release has its images: leave --without-images out")
        state = read_state()
        if flags.check:
            return check(state, flags.supply, images=images)
        return make_release(state, flags.supply, flags.key, real=flags.real, images=images)
    except (ReleaseError, OSError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
