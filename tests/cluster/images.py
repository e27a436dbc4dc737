"""Images of the cluster: those of this checkout, and two that are made of one static program each."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.places import CACHE, ROOT, ClusterError, run

#: Images of one program: name -> the program, and the words that start it.
SINGLE: Mapping[str, tuple[str, Sequence[str]]] = {
    "saltern-cluster/pause:1": ("pause", ["/pause"]),
    "saltern-cluster/coredns:1": ("coredns", ["/coredns"]),
}

#: Targets of docker/Dockerfile that the manifests name.
TARGETS = (
    *("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance"),
    *("front", "cli", "keygen", "redis", "minion"),
)


def single(name: str, programs: Path) -> Path:
    """An archive, as `docker save` writes it, of an image with one static program; made once."""
    program, words = SINGLE[name]
    archive = CACHE / f"{program}-{programs.name}.tar"
    if archive.exists():
        return archive
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        _add(tar, program, (programs / program).read_bytes(), 0o755)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": list(words), "User": "65532:65532"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]},
        "history": [{"created_by": "tests/cluster/images.py"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    part = archive.with_suffix(".part")
    with tarfile.open(part, "w") as tar:
        _add(tar, "config.json", json.dumps(config).encode())
        _add(tar, "layer.tar", layer.getvalue())
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    part.rename(archive)
    return archive


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def project(tag: str = "dev") -> Path:
    """An archive of this project's images, which a Docker engine has (`make images`); the same images are written once.

    Without an engine the last archive is taken. Raises ClusterError where there is neither.
    """
    names = [f"saltern/{target}:{tag}" for target in TARGETS]
    asked = ["docker", "image", "inspect", "--format", "{{.Id}}", *names]
    try:
        identities = run(asked, seconds=60)
    except (ClusterError, FileNotFoundError) as error:
        kept = sorted(CACHE.glob(f"images-{tag}-*.tar"), key=lambda path: path.stat().st_mtime)
        if kept:
            return kept[-1]
        raise ClusterError(
            f"the images of this checkout are not there: .ci/docker-engine start, make images\n{error}"
        ) from error
    archive = CACHE / f"images-{tag}-{hashlib.sha256(identities.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        for old in CACHE.glob(f"images-{tag}-*.tar"):
            old.unlink()
        part = archive.with_suffix(".part")
        with part.open("wb") as file:
            done = subprocess.run(
                ["docker", "image", "save", *names],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.PIPE,
                timeout=1800,
                check=False,
            )
        if done.returncode:
            raise ClusterError(f"docker image save: {done.stderr.decode()}")
        part.rename(archive)
    return archive
