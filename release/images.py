"""Writes the images of a release into one archive, with the same digests for each build of the same content.

    python -m release.images --version 0.1.0 --revision COMMIT --built-as TAG --to DIRECTORY NAME...

The images ``saltern/NAME:TAG`` of a Docker engine become ``saltern/NAME:VERSION`` in one archive, an OCI layout that
`docker load`, `podman load` and `skopeo copy oci-archive:` read. ``images.json`` beside it has the digest of each.
SOURCE_DATE_EPOCH is the time of the images. Layers are normalised by release.layers.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from release.layers import normalise

#: Fields of an image's configuration that a container is started with. The others describe the machine that built it.
STARTED_WITH = (
    "User",
    "ExposedPorts",
    "Env",
    "Entrypoint",
    "Cmd",
    "Healthcheck",
    "Volumes",
    "WorkingDir",
    "Labels",
    "StopSignal",
    "Shell",
)

#: Labels that compose adds: the service that it happened to build the image for, and its own version.
_BUILDERS_LABELS = "com.docker.compose."

#: zlib's window bits for gzip with a header that has no name and no time.
_GZIP = 31

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


class ImageError(Exception):
    """Raised when the archive cannot be written. The message says which image and why."""


class Blob(NamedTuple):
    """A file of the layout, by the digest of its content."""

    path: Path
    digest: str
    size: int

    def descriptor(self, media_type: str) -> dict[str, Any]:
        """Return how OCI documents name the blob."""
        return {"mediaType": media_type, "digest": self.digest, "size": self.size}


class Layer(NamedTuple):
    """A normalised layer: its compressed blob, and the digest of the archive in it."""

    blob: Blob
    diff_id: str


@dataclass(frozen=True)
class Release:
    """What all images of a release have in common."""

    version: str
    #: Commit that the release is built from.
    revision: str
    #: Seconds since 1970: the time of the commit.
    epoch: int

    @property
    def time(self) -> str:
        """The time of the release, as OCI writes it."""
        return datetime.fromtimestamp(self.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical(document: object) -> bytes:
    """Return a JSON document as bytes that depend on its content alone."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def configuration(built: Mapping[str, Any], diff_ids: Sequence[str], name: str, release: Release) -> dict[str, Any]:
    """Return the OCI configuration of an image from the one that the engine built."""
    started = {key: built["config"][key] for key in STARTED_WITH if built["config"].get(key)}
    labels = started.get("Labels") or {}
    started["Labels"] = {key: value for key, value in labels.items() if not key.startswith(_BUILDERS_LABELS)} | {
        "org.opencontainers.image.title": f"saltern/{name}",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.revision,
        "org.opencontainers.image.created": release.time,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    history = [
        {key: row[key] for key in ("created_by", "empty_layer") if key in row} | {"created": release.time}
        for row in built["history"]
    ]
    return {
        "architecture": built["architecture"],
        "os": built["os"],
        "created": release.time,
        "config": started,
        "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        "history": history,
    }


class Layout:
    """An OCI layout while it is written: blobs by digest in a directory, and the manifests of the index."""

    def __init__(self, directory: Path, release: Release) -> None:
        self._blobs = directory / "blobs" / "sha256"
        self._blobs.mkdir(parents=True)
        self._release = release
        #: Digest of a layer as the engine built it -> the normalised one. Images share layers.
        self._layers: dict[str, Layer] = {}
        self._manifests: list[dict[str, Any]] = []
        self._docker: list[dict[str, Any]] = []
        #: Name of an image -> what images.json says of it.
        self.summary: dict[str, dict[str, str]] = {}

    def add_blob(self, content: bytes) -> Blob:
        """Write a small blob."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._blobs / digest
        path.write_bytes(content)
        return Blob(path, f"sha256:{digest}", len(content))

    def add_layer(self, built: str, source: IO[bytes]) -> Layer:
        """Normalise and compress a layer; ``built`` is its digest as the engine built it."""
        if built not in self._layers:
            with tempfile.TemporaryFile(dir=self._blobs) as plain:
                normalise(source, plain, self._release.epoch)
                self._layers[built] = self._compressed(plain)
        return self._layers[built]

    def _compressed(self, plain: IO[bytes]) -> Layer:
        inside, outside, size = hashlib.sha256(), hashlib.sha256(), 0
        packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        unnamed = self._blobs / "new"
        plain.seek(0)
        with unnamed.open("wb") as packed:
            for block in _blocks(plain):
                inside.update(block)
                size += _write(packed, packer.compress(block), outside)
            size += _write(packed, packer.flush(), outside)
        path = unnamed.rename(self._blobs / outside.hexdigest())
        return Layer(Blob(path, f"sha256:{outside.hexdigest()}", size), f"sha256:{inside.hexdigest()}")

    def add_image(self, name: str, built: Mapping[str, Any], layers: Sequence[Layer]) -> None:
        """Add an image: its configuration, manifest and entries of the two indexes."""
        release = self._release
        config = self.add_blob(canonical(configuration(built, [layer.diff_id for layer in layers], name, release)))
        manifest = self.add_blob(
            canonical(
                {
                    "schemaVersion": 2,
                    "mediaType": _MANIFEST,
                    "config": config.descriptor(_CONFIG),
                    "layers": [layer.blob.descriptor(_LAYER) for layer in layers],
                }
            )
        )
        tag = f"saltern/{name}:{release.version}"
        self._manifests.append(
            manifest.descriptor(_MANIFEST)
            | {
                "platform": {"architecture": built["architecture"], "os": built["os"]},
                "annotations": {
                    "io.containerd.image.name": f"docker.io/{tag}",
                    "org.opencontainers.image.ref.name": tag,
                },
            }
        )
        self._docker.append(
            {
                "Config": _inside(config),
                "RepoTags": [tag],
                "Layers": [_inside(layer.blob) for layer in layers],
            }
        )
        self.summary[name] = {"manifest": manifest.digest, "id": config.digest}

    def write(self, target: Path) -> None:
        """Write the archive: sorted, with the release's time."""
        files: dict[str, bytes | Path] = {
            "oci-layout": canonical({"imageLayoutVersion": "1.0.0"}),
            "index.json": canonical({"schemaVersion": 2, "mediaType": _INDEX, "manifests": self._manifests}),
            # The layout of `docker save`, which engines before 25 need.
            "manifest.json": canonical(self._docker),
            **{f"blobs/sha256/{path.name}": path for path in self._blobs.iterdir()},
        }
        with tarfile.open(target, "w:", format=tarfile.PAX_FORMAT) as archive:
            for name in ("blobs", "blobs/sha256"):
                archive.addfile(self._header(name, tarfile.DIRTYPE, 0o755))
            for name, content in sorted(files.items()):
                header = self._header(name, tarfile.REGTYPE, 0o644)
                with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
                    header.size = file.seek(0, io.SEEK_END)
                    file.seek(0)
                    archive.addfile(header, file)

    def _header(self, name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        header = tarfile.TarInfo(name)
        header.type, header.mode, header.mtime = kind, mode, self._release.epoch
        return header


def _inside(blob: Blob) -> str:
    return f"blobs/sha256/{blob.path.name}"


def _write(file: IO[bytes], data: bytes, digest: Any) -> int:
    digest.update(data)
    return file.write(data)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block


def convert(saved: Path, release: Release, target: Path) -> dict[str, dict[str, str]]:
    """Write the archive of a release from one of `docker save`. Return {image: {"manifest": digest, "id": digest}}.

    Raises ImageError for an archive that is not `docker save`'s, OSError, tarfile.TarError.
    """
    with tarfile.open(saved, "r:") as archive, tempfile.TemporaryDirectory(dir=target.parent) as work:
        layout = Layout(Path(work), release)
        for row in sorted(_rows(archive), key=lambda row: str(row["RepoTags"])):
            name = row["RepoTags"][0].rpartition(":")[0].rpartition("/")[2]
            built = json.loads(_member(archive, row["Config"]).read())
            digests = built["rootfs"]["diff_ids"]
            layers = [
                layout.add_layer(digest, _member(archive, path))
                for digest, path in zip(digests, row["Layers"], strict=True)
            ]
            layout.add_image(name, built, layers)
        layout.write(target)
        return layout.summary


def _rows(archive: tarfile.TarFile) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = json.loads(_member(archive, "manifest.json").read())
    except KeyError:
        raise ImageError(f"{archive.name!s} has no manifest.json: it is not written by docker save") from None
    if nameless := [row["Config"] for row in rows if len(row["RepoTags"] or ()) != 1]:
        raise ImageError(f"images with no name or several names: {', '.join(nameless)}")
    return rows


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """Return a file of an archive; equal layers are links to one. Raises KeyError."""
    file = archive.extractfile(archive.getmember(name))
    assert file is not None
    return file


def image_names() -> list[str]:
    """Return the names of our images, as compose.yaml has them."""
    text = (Path(__file__).resolve().parents[1] / "compose.yaml").read_text("utf-8")
    return sorted(set(re.findall(r"^ *image: saltern/([a-z]+):", text, re.MULTILINE)))


def save(images: Sequence[str], target: Path) -> None:
    """Write images of the Docker engine into an archive. Raises ImageError."""
    done = subprocess.run(
        ["docker", "image", "save", "--output", str(target), *images], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImageError(f"docker save: {done.stderr.strip()}; .ci/docker-engine start brings an engine")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the archive and images.json. Return 0, or 1 with a message where that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="commit of the release")
    parser.add_argument("--built-as", required=True, metavar="TAG", help="tag of the images in the engine")
    parser.add_argument("--to", type=Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--architecture", default="amd64")
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of images, without saltern/")
    flags = parser.parse_args(argv)
    release = Release(flags.version, flags.revision, int(os.environ["SOURCE_DATE_EPOCH"]))
    target = flags.to / f"saltern-images-{flags.version}-{flags.architecture}.tar"
    try:
        with tempfile.TemporaryDirectory(dir=flags.to) as work:
            saved = Path(work) / "saved.tar"
            save([f"saltern/{name}:{flags.built_as}" for name in flags.names], saved)
            summary = convert(saved, release, target)
    except (ImageError, OSError, tarfile.TarError, KeyError) as error:
        sys.stderr.write(f"release.images: {error}\n")
        return 1
    (flags.to / "images.json").write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n", "utf-8")
    for name, digests in sorted(summary.items()):
        sys.stdout.write(f"{digests['manifest']}  saltern/{name}:{flags.version}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
