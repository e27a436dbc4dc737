"""CycloneDX documents (SBOM) of our wheels and images: ``make sbom`` and ``make sbom-images``.

    .supply/bin/python -m tests.supply.sbom --environment .venv [--images TAG] dist

Without ``--images``: one document ``<wheel>.cdx.json`` for each of our wheels in ``dist``. It names the wheel with its hash,
each locked package that the wheel needs on the images' Python (its extras included) with version, licence and the lock's
hashes, the C libraries that those packages bundle, and which needs which. With ``--images``: one document
``image-<name>.cdx.json`` for each of our images that a Docker engine has: its Debian packages, its Python packages and our
own.

The documents are reproducible: one commit, one lock and one image give the same bytes. Times come from SOURCE_DATE_EPOCH, serial
numbers from the content. Each document is checked against the schema of CycloneDX 1.6 before it is written.
It runs in the environment ``.supply`` (tests/supply/tools.lock); ``--environment`` names the one whose metadata is read.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

from release.images import image_names
from tests.supply.bundled import BUNDLED, Bundled

ROOT = Path(__file__).resolve().parents[2]
#: The interpreter of the images, Debian bookworm's: it decides which requirements count.
TARGET = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
}
#: Lock of the extra `reclass`, beside requirements.lock.
RECLASS_LOCK = ROOT / "tests/reclass.lock"
#: What kapicorp-reclass asks for and nobody installs: enum34 is of Python 2, ddt is for its tests.
NOT_INSTALLED = frozenset({"ddt", "enum34"})
#: Format of dpkg-query: one line for each package.
DPKG = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
#: Namespace of the serial numbers.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/saltern")


class SbomError(Exception):
    """Raised when a document cannot be written. The message says which one and why."""


class Locked(NamedTuple):
    """One entry of requirements.lock."""

    version: str
    #: SHA-256 of each file that pip may install.
    hashes: tuple[str, ...]


class Wheel(NamedTuple):
    """One of our wheels."""

    path: Path
    name: str
    version: str
    metadata: Message


# --- reading -----------------------------------------------------------------------------------------------------


def plain(name: str) -> str:
    """Return the normal form of a Python package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, Locked]:
    """Return the map of package name to its entry in requirements.lock. Raises OSError."""
    spec = importlib.util.spec_from_file_location("locked", ROOT / "docker" / "locked.py")
    assert spec is not None
    assert spec.loader is not None
    locked = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(locked)
    with path.open(encoding="utf-8") as lock:
        entries: list[tuple[str, str]] = list(locked.entries(lock))
    found = {}
    for name, text in entries:
        version = text.partition("==")[2].split()[0]
        found[plain(name)] = Locked(version, tuple(sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))))
    return found


def read_wheels(directory: Path) -> list[Wheel]:
    """Return our wheels in a directory, sorted by name. Raises OSError, and SbomError if there are none or two of one package."""
    found = []
    for path in sorted(directory.glob("saltern_*.whl")):
        with zipfile.ZipFile(path) as archive:
            (inside,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            metadata = Parser().parsestr(archive.read(inside).decode())
        found.append(Wheel(path, plain(metadata["Name"]), metadata["Version"], metadata))
    names = [wheel.name for wheel in found]
    if not names:
        raise SbomError(f"no saltern_*.whl in {directory}: run `make wheels` first")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SbomError(f"{directory} has several wheels of {', '.join(twice)}: remove the old ones")
    return found


def needs(requires: Iterable[str], extras: Iterable[str]) -> list[str]:
    """Return the names that requirements of a package mean on TARGET, when the package is installed with ``extras``."""
    found = []
    for text in requires:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**TARGET, "extra": extra}) for extra in ("", *extras)):
            found.append(plain(requirement.name))
    return sorted(set(found) - NOT_INSTALLED)


class Metadata:
    """Requirements and licences of packages: our wheels, and what is installed in one environment."""

    def __init__(self, environment: Path, wheels: Sequence[Wheel]) -> None:
        places = [str(place) for place in environment.glob("lib/python3*/site-packages")]
        self._found: dict[str, Message] = {}
        for distribution in importlib.metadata.distributions(path=places):
            self._found[plain(distribution.metadata["Name"])] = distribution.metadata  # type: ignore[assignment]
        self._found.update({wheel.name: wheel.metadata for wheel in wheels})
        self._ours = {wheel.name for wheel in wheels}

    def needs(self, name: str) -> list[str]:
        """Return the names that a package needs: ours with all extras; none for a package that is not installed."""
        metadata = self._found.get(name)
        if metadata is None:
            return []
        extras = metadata.get_all("Provides-Extra") or [] if name in self._ours else []
        return needs(metadata.get_all("Requires-Dist") or [], extras)

    def licence(self, name: str) -> str:
        """Return the licence of a package as its metadata says it; "" where it says none, or a whole text."""
        metadata = self._found.get(name)
        if metadata is None:
            return ""
        said = metadata.get("License-Expression") or metadata.get("License") or ""
        return str(said) if len(said) < 80 and "\n" not in said else ""

    def closure(self, roots: Iterable[str]) -> list[str]:
        """Return the names of packages that are needed, directly or not, with the roots."""
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.needs(name)
        return sorted(found)


# --- components --------------------------------------------------------------------------------------------------


def licences(text: str) -> list[LicenseExpression | DisjunctiveLicense]:
    """Return the licence of a component: an SPDX expression if the text is one, else a name."""
    if not text:
        return []
    if re.fullmatch(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+()-]+)*", text):
        return [LicenseExpression(text)]
    return [DisjunctiveLicense(name=text)]


def python_package(name: str, locked: Locked, metadata: Metadata) -> Component:
    """Return the component of a locked package. Its bundled libraries are inside it."""
    purl = PackageURL("pypi", None, name, locked.version)
    files = [HashType(alg=HashAlgorithm.SHA_256, content=one) for one in locked.hashes]
    component = Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=locked.version,
        purl=purl,
        bom_ref=str(purl),
        licenses=licences(metadata.licence(name)),
        # The lock does not say which file has which hash: each is one that may have been installed.
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/project/{name}/{locked.version}/"),
                hashes=files,
            )
        ]
        if files
        else [],
    )
    for one in BUNDLED.get(name, ()):
        component.components.add(bundled_component(one, name))
    return component


def bundled_component(one: Bundled, carrier: str) -> Component:
    """Return the component of a library that the wheel of ``carrier`` bundles."""
    purl = PackageURL.from_string(f"{one.purl}@{one.version}")
    return Component(
        type=ComponentType.LIBRARY,
        name=one.name,
        version=one.version,
        purl=purl,
        bom_ref=f"{purl}#{carrier}",
        licenses=licences(one.licence),
    )


def own_package(name: str, version: str, digest: str, licence: str) -> Component:
    """Return the component of one of our packages; ``digest`` is the SHA-256 of its wheel, or "" where no wheel is at hand."""
    purl = PackageURL("pypi", None, name, version)
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=purl,
        bom_ref=str(purl),
        licenses=licences(licence),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
    )


def debian_packages(listing: str) -> Iterator[Component]:
    """Yield the components of a listing in the format DPKG."""
    for line in listing.splitlines():
        name, version, architecture, source, source_version = line.split("\t")
        qualifiers = {"arch": architecture, "distro": "debian-12"}
        if source != name:
            qualifiers["upstream"] = f"{source}@{source_version}"
        purl = PackageURL("deb", "debian", name, version, qualifiers)
        yield Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=f"deb:{name}:{architecture}"
        )


# --- documents ---------------------------------------------------------------------------------------------------


def document(
    subject: Component, components: Mapping[str, Component], metadata: Metadata, others: Iterable[Component]
) -> str:
    """Return the JSON text of a document about ``subject``: Python packages by name, and other components.

    Raises SbomError where the text breaks the schema.
    """
    bom = Bom(components=[*(one for one in components.values() if one is not subject), *others])
    bom.metadata.component = subject
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    for name, component in components.items():
        targets = [components[each] for each in metadata.needs(name) if each in components]
        bom.register_dependency(component, targets)
        for inside in component.components:
            bom.register_dependency(component, [inside])
    if all(one is not subject for one in components.values()):
        bom.register_dependency(
            subject, [*components.values(), *(one for one in bom.components if one not in components.values())]
        )
    bom.serial_number = NAMESPACE
    bom.serial_number = uuid.uuid5(NAMESPACE, JsonV1Dot6(bom).output_as_string())
    text = JsonV1Dot6(bom).output_as_string(indent=1) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SbomError(f"the document of {subject.name} breaks the schema of CycloneDX 1.6: {error}")
    return text


def components_of(
    names: Iterable[str], wheels: Sequence[Wheel], lock: Mapping[str, Locked], metadata: Metadata
) -> dict[str, Component]:
    """Return the map of package name to component. Raises SbomError for a package that is neither ours nor locked."""
    ours = {wheel.name: wheel for wheel in wheels}
    found = {}
    for name in names:
        if name in ours:
            wheel = ours[name]
            digest = hashlib.sha256(wheel.path.read_bytes()).hexdigest()
            found[name] = own_package(name, wheel.version, digest, metadata.licence(name))
        elif name in lock:
            found[name] = python_package(name, lock[name], metadata)
        else:
            raise SbomError(f"requirements.lock does not hold {name}: `make lock` writes it anew")
    return found


def wheel_document(wheel: Wheel, wheels: Sequence[Wheel], lock: Mapping[str, Locked], metadata: Metadata) -> str:
    """Return the document of one of our wheels. Raises OSError, SbomError."""
    components = components_of(metadata.closure([wheel.name]), wheels, lock, metadata)
    return document(components[wheel.name], components, metadata, ())


def image_document(
    name: str,
    digest: str,
    debian: str,
    python: Sequence[str],
    wheels: Sequence[Wheel],
    lock: Mapping[str, Locked],
    metadata: Metadata,
) -> str:
    """Return the document of an image: ``digest`` is its id, ``debian`` a listing in the format DPKG, ``python`` the names of
    its Python packages.

    Our packages in an image are built there, so they have no hash of a wheel.
    """
    subject = Component(
        type=ComponentType.CONTAINER,
        name=f"saltern/{name}",
        version=digest,
        bom_ref=f"image:{name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))],
    )
    ours = {wheel.name: wheel for wheel in wheels}
    components = components_of((each for each in python if each not in ours), (), lock, metadata)
    for each in sorted(set(python) & set(ours)):
        components[each] = own_package(each, ours[each].version, "", metadata.licence(each))
    return document(subject, components, metadata, debian_packages(debian))


# --- images ------------------------------------------------------------------------------------------------------


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise SbomError(
            f"docker {arguments[0]}: {said.strip()}; images need a Docker engine: .ci/docker-engine start"
        ) from error
    return done.stdout


def read_image(image: str) -> tuple[str, str, list[str]]:
    """Return an image's id, its Debian packages (format DPKG) and the names of its Python packages. Raises SbomError."""
    digest = _docker("image", "inspect", "--format", "{{.Id}}", image).strip()
    run = ("run", "--rm", "--network", "none", "--entrypoint")
    debian = _docker(*run, "dpkg-query", image, "-W", "-f", DPKG)
    listing = _docker(
        *run, "sh", image, "-c", "ls -d /opt/saltern/lib/python3*/site-packages/*.dist-info 2>/dev/null || true"
    )
    names = [plain(Path(line).name.partition("-")[0]) for line in listing.splitlines()]
    return digest, debian, sorted(names)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the documents. Return 0, or 1 with a message where one cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--environment", type=Path, default=ROOT / ".venv", help="virtual environment with the locked packages"
    )
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.lock")
    parser.add_argument(
        "--images", metavar="TAG", help="write the documents of the images with this tag, not those of the wheels"
    )
    parser.add_argument("directory", type=Path, help="directory of our wheels; the documents are written there")
    arguments = parser.parse_args(argv)
    try:
        lock = read_lock(RECLASS_LOCK) | read_lock(arguments.lock)
        wheels = read_wheels(arguments.directory)
        metadata = Metadata(arguments.environment, wheels)
        texts: dict[str, str] = {}
        if arguments.images:
            for name in image_names():
                image = read_image(f"saltern/{name}:{arguments.images}")
                texts[f"image-{name}"] = image_document(name, *image, wheels, lock, metadata)
        else:
            texts = {
                wheel.path.name.removesuffix(".whl"): wheel_document(wheel, wheels, lock, metadata) for wheel in wheels
            }
        for stem, text in texts.items():
            path = arguments.directory / f"{stem}.cdx.json"
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    except (SbomError, OSError) as error:
        sys.stderr.write(f"sbom: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
