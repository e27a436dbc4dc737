"""Images of the cluster: those of this checkout, and some that are made of one static program each."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.cluster.places import CACHE, ROOT, SOURCES, ClusterError, run

#: Programs of the cluster that are images of their own, saltern-cluster/NAME:1.
SINGLE = ("pause", "coredns")

#: Targets of stand_ins/Dockerfile, and the names by which manifests know them.
STAND_INS = {"git-sync": "registry.k8s.io/git-sync/git-sync:v4.4.0"}

#: Targets of docker/Dockerfile that the manifests name.
TARGETS = (
    *("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance"),
    *("front", "cli", "keygen", "redis", "minion"),
)


def single(program: str, programs: Path) -> Path:
    """An archive, as `docker save` writes it, of an image with one static program; made once."""
    archive = CACHE / f"{program}-{programs.name}.tar"
    if archive.exists():
        return archive
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        # /bin: the Prometheus operator names its reloader by this path.
        _add(tar, f"bin/{program}", (programs / program).read_bytes(), 0o755)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/bin/{program}"], "User": "65532:65532"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]},
        "history": [{"created_by": "tests/cluster/images.py"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [f"saltern-cluster/{program}:1"], "Layers": ["layer.tar"]}]
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


def stand_in(target: str) -> Path:
    """An archive of an image of stand_ins/Dockerfile, which a Docker engine builds once for these sources. Raises ClusterError."""
    sources = SOURCES / "stand_ins"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources.iterdir()))).hexdigest()[:12]
    archive = CACHE / f"{target}-{digest}.tar"
    if not archive.exists():
        try:
            run(["docker", "build", "-q", "--target", target, "-t", STAND_INS[target], sources], seconds=1800)
        except FileNotFoundError as error:
            raise ClusterError(f"no Docker engine for the image {target}: .ci/docker-engine start") from error
        part = archive.with_suffix(".part")
        run(["docker", "image", "save", "-o", part, STAND_INS[target]], seconds=600)
        part.rename(archive)
    return archive


def earlier(commit: str) -> str:
    """Build the images of another commit, as that commit builds them; return their tag. At once where the cache has them."""
    tag = f"at-{commit[:12]}"
    if list(CACHE.glob(f"images-{tag}-*.tar")):
        return tag
    with tempfile.TemporaryDirectory() as directory:
        unpack(commit, Path(directory))
        words = ["nice", "-n", "10", "env", f"COMPOSE_PROJECT_NAME={tag}", f"TAG={tag}", "docker/images"]
        run(words, seconds=7200, cwd=Path(directory))
    return tag


def unpack(commit: str, directory: Path) -> None:
    """The files of a commit of this repository. Raises ClusterError where Git does not have it."""
    archive = directory / "commit.tar"
    run(["git", "-C", ROOT, "archive", "-o", archive, commit])
    run(["tar", "-xf", archive, "-C", directory])
    archive.unlink()


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
