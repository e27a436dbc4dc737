"""``file.serialize`` and ``file.decode``: files with data in a format of programs, and files from base64 text."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping

from statecore.builtin.states.file.arguments import Refused, attributes, local_path, step
from statecore.builtin.states.file.serializers import SERIALIZERS, Serializer
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.write_plan import Write
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError
from statecore.model.types import FileChange, Outcome, Plan

#: Stands for a missing value in the reported differences, as in Salt.
_NOTHING = "<_null_>"


_IDLE_OPTIONS = "The 'deserializer_opts' option is ignored unless merge_if_exists is set to True."


def serialize(
    ctx: Context,
    name: str,
    dataset: object = None,
    dataset_pillar: str | None = None,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = None,
    backup: object = "",
    makedirs: bool = False,
    show_changes: bool = True,
    create: bool = True,
    merge_if_exists: bool = False,
    encoding: str | None = None,
    encoding_errors: str = "strict",
    serializer: str | None = None,
    serializer_opts: object = None,
    deserializer_opts: object = None,
    check_cmd: str | None = None,
    tmp_dir: str = "",
    tmp_ext: str = "",
    formatter: str | None = None,
) -> Plan:
    """Write data to a file in a serialization format.

    dataset, dataset_pillar
        the data; or the pillar key that contains it
    serializer
        yaml, json, toml, configparser, msgpack, plist or python. ``formatter`` is the old name of this argument.
    merge_if_exists
        True: merge the data into the data that the file contains
    serializer_opts, deserializer_opts
        options of the library that writes the data; of the one that reads the file for ``merge_if_exists``
    encoding, encoding_errors
        encoding of the file, and Python's error handler for characters that it does not have
    user, group, mode, backup, makedirs, show_changes, create, check_cmd, tmp_dir, tmp_ext
        as in ``file.managed``
    """
    try:
        place = local_path(ctx, name)
        if place.is_dir():
            raise Refused(f"Specified target {name} is a directory")
        if not create and not place.is_file():
            return Plan.unchanged(f"File {name} is not present and is not set for creation")
        form_name, form = _form(serializer, formatter)
        data = _data(ctx, dataset, dataset_pillar)
        old = managed_file.read(place, name)
        there, merged = None, None
        if merge_if_exists and old is not None:
            there = _loaded(form_name, form, old, _options(deserializer_opts))
            if there is not None:
                merged = _merged(there, data)
                if merged == there:
                    return Plan.unchanged(f"The file {name} is in the correct state")
                data = merged
        options = {**form.options, **(form.unicode if encoding else {}), **_options(serializer_opts)}
        content = _written(form_name, form, data, options, encoding, encoding_errors)
        owner_and_mode, _ = attributes(user, group, mode)
        plan = Write(
            ctx=ctx,
            name=name,
            real_path=place,
            real=place,
            old=old,
            new=content,
            attributes=owner_and_mode,
            makedirs=makedirs,
            dir_mode=None,
            backup=str(backup or ""),
            show_changes=show_changes,
            check_cmd=check_cmd,
            tmp_dir=tmp_dir,
            tmp_ext=tmp_ext,
            changes={"diff": _differences(there, merged)}
            if isinstance(merged, dict) and isinstance(there, dict)
            else {},
        ).plan()
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    if deserializer_opts and not merge_if_exists:
        plan = plan._replace(warnings=(*plan.warnings, _IDLE_OPTIONS))
    return plan._replace(comment=f"Dataset will be serialized and stored into {name}") if plan.steps else plan


def decode(
    ctx: Context,
    name: str,
    encoded_data: object = None,
    contents_pillar: str | None = None,
    encoding_type: str = "base64",
    checksum: str = "md5",
) -> Plan:
    """Write a file with the decoded content of a base64 text.

    encoded_data, contents_pillar
        the base64 text; or the pillar key that contains it
    encoding_type
        ``base64``; no other type is supported
    checksum
        hash algorithm for the reported changes
    """
    try:
        place = local_path(ctx, name)
        data = _decoded(_given(ctx, encoded_data, contents_pillar), encoding_type)
        old = managed_file.read(place, name)
        before, after = (None if one is None else _digest(one, checksum) for one in (old, data))
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if old == data:
        return Plan.unchanged("File is in the correct state.")
    changes = {"old": before, "new": after}

    def work() -> Outcome:
        managed_file.replace(ctx.host, place, data, Attributes())
        return Outcome("File was updated.", changes)

    write = step(f"write {name}", work, FileChange(name, old, data))
    return Plan.change("File is set to be updated.", (write,), changes)


def _form(serializer: str | None, formatter: str | None) -> tuple[str, Serializer]:
    if serializer and formatter:
        raise Refused("Only one of serializer and formatter are allowed")
    name = str(serializer or formatter or "yaml").lower()
    if name not in SERIALIZERS:
        raise Refused(f"The {name} serializer could not be found. There are {', '.join(SERIALIZERS)}.")
    return name, SERIALIZERS[name]


def _data(ctx: Context, dataset: object, dataset_pillar: str | None) -> object:
    if dataset and dataset_pillar:
        raise Refused("Only one of 'dataset' and 'dataset_pillar' is permitted")
    data = ctx.call("pillar.get", dataset_pillar, None, unmask=True) if dataset_pillar else dataset
    if data is None:
        if dataset_pillar:
            raise Refused(f"Neither 'dataset' nor 'dataset_pillar' was defined: pillar has no {dataset_pillar}")
        raise Refused("Neither 'dataset' nor 'dataset_pillar' was defined")
    return data


def _options(given: object) -> dict[str, object]:
    """Return the options of a serializer, which are given as a map or as a list of maps, as one map. Raises Refused for
    anything else.
    """
    listed = given if isinstance(given, list) else [given or {}]
    parts = [part for part in listed if isinstance(part, Mapping)]
    if len(parts) < len(listed):
        raise Refused(f"options of a serializer are a map, or a list of maps, not {given!r}")
    return {str(key): value for part in parts for key, value in part.items()}


def _loaded(name: str, form: Serializer, old: bytes, options: Mapping[str, object]) -> object:
    if form.load is None:
        raise Refused(f"merge_if_exists is not supported for the {name} serializer")
    try:
        return form.load(old, options)
    except Exception as error:
        raise Refused(f"Failed to deserialize existing data: {error}") from error


def _written(
    name: str, form: Serializer, data: object, options: Mapping[str, object], encoding: str | None, errors: str
) -> bytes:
    try:
        made = form.dump(data, options)
        return made if isinstance(made, bytes) else f"{made}\n".encode(encoding or "utf-8", errors)
    except Exception as error:
        raise Refused(f"the data cannot be written as {name}: {error}") from error


def _merged(there: object, data: object) -> object:
    """Return ``data`` merged over the existing file's data (``there``), map by map. A value that is not a map is replaced."""
    if not (isinstance(there, Mapping) and isinstance(data, Mapping)):
        return data
    return {**there, **{key: _merged(there[key], value) if key in there else value for key, value in data.items()}}


def _differences(old: Mapping[object, object], new: Mapping[object, object]) -> dict[object, object]:
    """Map of each key of the data that the merge changed to {"old": value, "new": value}; nested for nested maps."""
    found: dict[object, object] = {}
    for key, value in new.items():
        before = old.get(key, _NOTHING)
        if key in old and before == value:
            continue
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[key] = _differences(before, value)
        else:
            found[key] = {"new": value, "old": before}
    return found


def _given(ctx: Context, encoded_data: object, contents_pillar: str | None) -> str | bytes:
    if encoded_data and contents_pillar:
        raise Refused("Specify only one 'encoded_data' or 'contents_pillar' argument.")
    if not (encoded_data or contents_pillar):
        raise Refused("Specify either the 'encoded_data' or 'contents_pillar' argument.")
    given = encoded_data or ctx.call("pillar.get", contents_pillar, False, unmask=True)
    if given is False:
        raise Refused(f"Pillar data not found: {contents_pillar}")
    return given if isinstance(given, str | bytes) else str(given)


def _decoded(given: str | bytes, encoding_type: str) -> bytes:
    if encoding_type != "base64":
        raise Refused(f"not supported: encoding_type {encoding_type}; use base64")
    try:
        return base64.b64decode(given if isinstance(given, bytes) else given.encode())
    except (binascii.Error, ValueError) as error:
        raise Refused(f"what is given is not base64: {error}") from error


def _digest(data: bytes, algorithm: str) -> str:
    try:
        return hashlib.new(algorithm, data).hexdigest()
    except ValueError as error:
        raise Refused(f"checksum: unknown hash algorithm '{algorithm}'") from error
