"""The archive of a release's images, made of archives as `docker save` writes them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from release.images import ImageError, Release, configuration, convert, image_names

RELEASE = Release("1.2.3", "c" * 40, 1_700_000_000)

BUILT: dict[str, Any] = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2026-11-23T13:00:00.123456789Z",
    "docker_version": "20.10.24",
    "container": "abc",
    "container_config": {"Hostname": "abc"},
    "config": {
        "Hostname": "abc",
        "Image": "sha256:1",
        "User": "10001",
        "Cmd": ["a"],
        "Entrypoint": None,
        "Env": ["A=1"],
    },
    "history": [
        {"created": "2026-11-23T13:00:00Z", "created_by": "RUN a", "comment": "buildkit.dockerfile.v0"},
        {"created": "2026-11-23T13:00:01Z", "created_by": "CMD a", "empty_layer": True},
    ],
}


def a_tar(files: dict[str, bytes], links: dict[str, str] | None = None, mtime: int = 0) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), mtime
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return made.getvalue()


def saved(tmp_path: Path, built_at: int) -> Path:
    """An archive of two images that share a layer, as the engine saves them."""
    shared = a_tar({"etc/os": b"debian"}, mtime=built_at)
    own = a_tar({"app": b"1"}, mtime=built_at)
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in (shared, own)]
    configs = {
        "one": BUILT | {"created": f"{built_at}", "rootfs": {"type": "layers", "diff_ids": digests}},
        "two": BUILT | {"created": f"{built_at}", "rootfs": {"type": "layers", "diff_ids": digests[:1]}},
    }
    rows = [
        {"Config": "one.json", "RepoTags": ["saltern/one:work"], "Layers": ["l1/layer.tar", "l2/layer.tar"]},
        {"Config": "two.json", "RepoTags": ["saltern/two:work"], "Layers": ["l3/layer.tar"]},
    ]
    files = {f"{name}.json": json.dumps(config).encode() for name, config in configs.items()}
    files |= {"l1/layer.tar": shared, "l2/layer.tar": own, "manifest.json": json.dumps(rows).encode()}
    path = tmp_path / f"saved-{built_at}.tar"
    path.write_bytes(a_tar(files, {"l3/layer.tar": "../l1/layer.tar"}))
    return path


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive if info.isreg()}  # type: ignore[union-attr]


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    paths = []
    for built_at in (1_800_000_000, 1_900_000_000):
        paths.append(tmp_path / f"{built_at}.tar")
        convert(saved(tmp_path, built_at), RELEASE, paths[-1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_archive_is_a_layout_whose_digests_are_true(tmp_path: Path) -> None:
    summary = convert(saved(tmp_path, 1_800_000_000), RELEASE, tmp_path / "a.tar")
    files = read(tmp_path / "a.tar")
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    blobs = {name.removeprefix("blobs/sha256/"): data for name, data in files.items() if name.startswith("blobs/")}
    assert {hashlib.sha256(data).hexdigest() for data in blobs.values()} == set(blobs)
    assert len(blobs) == 2 * 2 + 2, "two configurations, two manifests, two layers: one is shared"
    for entry in json.loads(files["index.json"])["manifests"]:
        name = entry["annotations"]["org.opencontainers.image.ref.name"]
        assert entry["digest"] == summary[name.removeprefix("saltern/").removesuffix(":1.2.3")]["manifest"]
        manifest = json.loads(blobs[entry["digest"].removeprefix("sha256:")])
        config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
        layers = [gzip.decompress(blobs[one["digest"].removeprefix("sha256:")]) for one in manifest["layers"]]
        assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]


def test_docker_load_of_old_engines_finds_the_same_images(tmp_path: Path) -> None:
    convert(saved(tmp_path, 1_800_000_000), RELEASE, tmp_path / "a.tar")
    files = read(tmp_path / "a.tar")
    rows = json.loads(files["manifest.json"])
    assert [(row["RepoTags"], len(row["Layers"])) for row in rows] == [
        (["saltern/one:1.2.3"], 2),
        (["saltern/two:1.2.3"], 1),
    ]
    assert all(path in files for row in rows for path in (row["Config"], *row["Layers"]))


def test_an_image_keeps_what_it_is_started_with_and_nothing_of_the_builder() -> None:
    labels = {"com.docker.compose.service": "host-web1", "own": "1"}
    made = configuration(BUILT | {"config": BUILT["config"] | {"Labels": labels}}, ["sha256:1"], "one", RELEASE)
    assert [key for key in made["config"]["Labels"] if not key.startswith("org.opencontainers.")] == ["own"]
    assert made["config"] | {"Labels": None} == {"User": "10001", "Cmd": ["a"], "Env": ["A=1"], "Labels": None}
    assert made["created"] == "2023-11-14T22:13:20Z"
    assert made["config"]["Labels"]["org.opencontainers.image.version"] == "1.2.3"
    assert made["config"]["Labels"]["org.opencontainers.image.revision"] == "c" * 40
    assert made.keys() == {"architecture", "os", "created", "config", "rootfs", "history"}
    assert made["history"][1] == {"created_by": "CMD a", "empty_layer": True, "created": made["created"]}


def test_what_docker_did_not_save_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tar"
    path.write_bytes(a_tar({"x": b""}))
    with pytest.raises(ImageError, match="not written by docker save"):
        convert(path, RELEASE, tmp_path / "a.tar")


def test_the_names_are_those_of_the_compose_project() -> None:
    assert {"publisher", "reqserver", "mworker", "minion", "redis", "cli"} <= set(image_names())
