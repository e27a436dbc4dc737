"""The content that a ``file`` state gives a file: from arguments, pillar or grains, or from a source file.

A source's content is rendered, encoded and verified here. The module also reads the texts of several sources for edits,
checks signatures, and keeps the texts of ``file.accumulated`` for the length of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from statecore.builtin.states.file.arguments import Refused
from statecore.host.content import diffs, managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.sources import file_source
from statecore.sources.file_source import FileSource, FileVerification, Missing, Signers, WrongDigest, find

#: Bytes at the start of a source that tell whether it is binary, and so no template.
_SNIFF = 2048

#: Argument -> (function that returns the value, Salt's word for the key in messages, options of the function).
_KEPT: Mapping[str, tuple[str, str, Mapping[str, object]]] = {
    "contents_pillar": ("pillar.get", "Pillar", {"unmask": True}),
    "contents_grains": ("grains.get", "Grain", {}),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """How the content of a managed file is made from a source: saltenv, template engine, template variables and encoding.

    Raises Refused if ``context`` or ``defaults`` is not a map.
    """

    saltenv: str
    template: str | None
    context: object
    defaults: object
    encoding: str | None = None
    encoding_errors: str = "strict"
    #: Accumulator name -> texts of ``file.accumulated`` for this file; None: no accumulators.
    accumulator: Mapping[str, object] | None = None
    #: Arguments of the state that templates see: user, group, mode and attrs.
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("Context", self.context), ("Defaults", self.defaults)):
            if value and not isinstance(value, Mapping):
                raise Refused(f"{name} must be formed as a dict")

    def rendered(self, ctx: Context, text: str, address: str, name: str) -> str:
        """Render a template's text with the values of the state, and return the text of the file.

        ``address``: its source, for error messages; ``name``: the managed file. Raises SlsError if the template fails.
        """
        gathered = {} if self.accumulator is None else {"accumulator": self.accumulator}
        # Templates are bound to the grains of the run's start; ``grains.set`` may have changed them since.
        grains = {"grains": ctx.call("grains.items")} if "grains.set" in ctx.scratch else {}
        # As in Salt, ``context`` may replace the names of the file itself.
        values = {
            "name": name,
            "source": address,
            **self.arguments,
            **grains,
            **(self.defaults if isinstance(self.defaults, Mapping) else {}),
            **(self.context if isinstance(self.context, Mapping) else {}),
            **gathered,
        }
        return ctx.templates.render(text, str(self.template), values, saltenv=self.saltenv, source=address)

    def encoded(self, text: str) -> bytes:
        """Return a text as the bytes of the managed file, in its encoding.

        Raises Refused for an unknown encoding or a character that it cannot encode.
        """
        try:
            return text.encode(self.encoding or "utf-8", self.encoding_errors)
        except (LookupError, UnicodeEncodeError) as error:
            raise Refused(f"Unable to manage file: {error}") from error


@dataclass(frozen=True, slots=True)
class Literal:
    """The ``contents*`` arguments of ``file.managed``: the content itself, or pillar keys or grains that contain it."""

    contents: object
    contents_pillar: object
    contents_grains: object
    delimiter: str
    allow_empty: bool
    newline: bool

    def read(self, ctx: Context, source: object) -> str | bytes | None:
        r"""Return the content that the ``contents*`` arguments give: text with ``\n`` line ends, or bytes if it is not
        UTF-8. None if no argument gives a content.

        Raises Refused if arguments exclude each other, a key is missing, or the content is empty and ``allow_empty`` is
        False.
        """
        given = {key: getattr(self, key) for key in ("contents", *_KEPT) if getattr(self, key) is not None}
        if not given:
            return None
        if len(given) > 1:
            raise Refused("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted")
        if source:
            raise Refused(
                "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
            )
        argument, value = next(iter(given.items()))
        shown = f"'{argument}'"
        if argument in _KEPT:
            shown = f"{argument} {value}"
            value = self._kept(ctx, argument, value)
        if not value and not self.allow_empty:
            raise Refused(
                f"{shown} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
            )
        return self._text(value)

    def _kept(self, ctx: Context, argument: str, names: object) -> object:
        function, word, options = _KEPT[argument]
        parts = []
        for name in names if isinstance(names, list) else [names]:
            if not isinstance(name, str | int | float):
                raise Refused(f"{argument} is a name, or a list of names, not {name!r}")
            found = ctx.call(function, name, None, delimiter=self.delimiter, **options)
            if found is None:
                raise Refused(f"{word} {name} does not exist")
            parts.append(found)
        return parts if isinstance(names, list) else parts[0]

    def _text(self, value: object) -> str | bytes:
        if isinstance(value, bytes):
            binary = value
            try:
                value = binary.decode()
            except UnicodeDecodeError:
                return binary
        parts = value if isinstance(value, list | tuple) else [value]
        text = "".join(f"{line}\n" for part in parts for line in lines_of(str(part)))
        return text if self.newline else text.rstrip("\n")


class Content(NamedTuple):
    """The content that a managed file must have: bytes, or the path of a copy if it is large."""

    data: bytes | Path
    #: Permission bits of the source file; None if the source has none.
    mode: int | None = None
    #: URL or path of the source; "" for literal content.
    address: str = ""


def wanted_bytes(
    ctx: Context,
    spec: Spec,
    literal: str | bytes | None,
    source: object,
    name: str,
    *,
    wanted: FileVerification,
) -> Content:
    """Return the content that a managed file is to have, from its literal content or its source. The content of a large
    file is returned as a path.

    Raises Refused if no source can be read or verified, and SlsError if the template fails.
    """
    if isinstance(literal, bytes):
        return Content(literal)
    if literal is not None:
        return Content(spec.encoded(spec.rendered(ctx, literal, "", name) if spec.template else literal))
    address, place, source_mode = find_source(ctx, source, spec.saltenv, name, wanted)
    try:
        if not (spec.template or spec.encoding):
            return Content(managed_file.source(place), source_mode, address)
        raw = place.read_bytes()
        text = raw.decode()
    except UnicodeDecodeError as error:
        if spec.template and diffs.is_binary(raw[:_SNIFF]):
            # As in Salt: a directory of templates may contain pictures.
            return Content(managed_file.source(place), source_mode, address)
        raise Refused(f"Unable to manage file: {address} is not UTF-8 text: {error}") from error
    except OSError as error:
        raise Refused(f"Unable to manage file: {address} cannot be read: {error.strerror}") from error
    made = spec.encoded(spec.rendered(ctx, text, address, name) if spec.template else text)
    return Content(made, source_mode, address)


def find_source(ctx: Context, source: object, saltenv: str, name: str, wanted: FileVerification) -> FileSource:
    """Return the first source of a ``file`` state that exists and passes verification (digest, signature): its address,
    its path for this process and its mode. Raises Refused with Salt's comment if there is none.
    """
    try:
        return file_source.find(ctx, source, saltenv, name, wanted)
    except WrongDigest as error:
        raise Refused(str(error)) from error
    except CommandError as error:
        # As in Salt: test mode does not tell which state cannot read a single source.
        in_test = str(error) if isinstance(source, str) else ""
        raise Refused(f"Unable to manage file: {error}", in_test) from error


def texts_of(
    ctx: Context,
    spec: Spec,
    name: str,
    source: object,
    sources: object,
    source_hash: object = None,
    source_hashes: object = None,
) -> list[str]:
    """Return the rendered text of each source of a ``file`` state, in order, each verified against its hash.

    Raises Refused if a source cannot be read or verified, SlsError if a template fails.
    """
    found = []
    for entry, digest in _paired(source, sources, source_hash, source_hashes):
        try:
            # These states have no skip_verify argument: a source without a digest is accepted.
            wanted = FileVerification(str(digest or ""), skip_verify=not digest)
            address, place, _mode = find(ctx, entry, spec.saltenv, name, wanted)
            content = place.read_text("utf-8")
        except (CommandError, OSError, UnicodeDecodeError) as error:
            raise Refused(f"Failed to load template file {entry}{_reason(error)}") from error
        found.append(spec.rendered(ctx, content, address, name) if spec.template else content)
    return found


def _paired(source: object, sources: object, source_hash: object, source_hashes: object) -> list[tuple[object, object]]:
    """Return (source, its hash) for each source of a ``file`` state; the hash is None if the state names none.

    Raises Refused if singular and plural arguments are mixed.
    """
    if source and sources:
        raise Refused("source and sources are mutually exclusive")
    if source_hash and source_hashes:
        raise Refused("source_hash and source_hashes are mutually exclusive")
    if source:
        return [(source, source_hash)]
    many = _items(sources)
    return list(zip_longest(many, _items(source_hashes)[: len(many)]))


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, Iterable) else []


def _reason(error: Exception) -> str:
    """Return an error's text, to append to Salt's comment; "" for a missing file, which Salt's comment already
    describes.
    """
    return "" if isinstance(error, Missing) else f": {error}"


def signers_of(given: dict[str, Any], *signatures: object) -> Signers:
    """Return the signers that a state's arguments ``given`` require for a source: fingerprints, keyring, gpg's home and
    the module that verifies.

    ``signatures`` are the values of the arguments that request a signature check. Raises Refused if signers are named
    but no check is requested.
    """
    named = ("signed_by_any", "signed_by_all", "keyring", "gnupghome")
    if not any(signatures) and (idle := [argument for argument in named if given.get(argument)]):
        raise Refused(f"{', '.join(idle)}: nothing asks for a signature; signature or source_hash_sig does")
    wanted = {argument: given.get(argument) for argument in named}
    return Signers.of(**wanted, sig_backend=str(given.get("sig_backend") or "gpg"))


@dataclass(frozen=True, slots=True)
class Signing:
    """The OpenPGP signature check of a managed file's content: location of the signature and accepted signers."""

    #: True: the content contains its signature; else the URL of a detached signature; false: no check.
    signature: object
    signers: Signers
    verify_ssl: bool = True

    def check(self, ctx: Context, content: bytes | Path, address: str, saltenv: str) -> None:
        """Check the OpenPGP signature of a managed file's content, if the state requires one.

        A refused content is removed from the minion's cache, if ``address`` is a source that was copied there.
        Raises Refused if the content has no valid signature of an accepted signer.
        """
        if not self.signature:
            return
        try:
            if isinstance(content, Path):
                self._checked(ctx, content, saltenv)
                return
            import tempfile  # it brings random with it, and few files are signed

            # Verify exactly the bytes that will be written: rendering again could give other bytes.
            with tempfile.TemporaryDirectory(prefix="saltern-signed-") as directory:
                copy = Path(directory, "content")
                copy.write_bytes(content)
                self._checked(ctx, copy, saltenv)
        except CommandError as error:
            file_source.forget(ctx, address, saltenv)
            raise Refused(f"Failed checking new file's signature: {error}") from error
        except OSError as error:
            raise Refused(f"Failed checking new file's signature: {error.filename}: {error.strerror}") from error

    def _checked(self, ctx: Context, file: Path, saltenv: str) -> None:
        self.signers.check(ctx, file, self.signature, saltenv, verify_ssl=self.verify_ssl)


#: Key of the accumulators in ``ctx.scratch``.
_KEY = "file.accumulators"


@dataclass(slots=True)
class Accumulators:
    """The texts that ``file.accumulated`` states of one run collected for each file."""

    #: The run's low chunks: identify the run, because a process may execute several runs.
    run: tuple[Mapping[str, object], ...]
    #: File -> accumulator name -> texts.
    texts: dict[str, dict[str, list[object]]] = field(default_factory=dict)
    #: File -> accumulator name -> IDs or names of the states that use it.
    readers: dict[str, dict[str, list[object]]] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: Context) -> Accumulators:
        """Return the Accumulators of the current state run: the texts that ``file.accumulated`` collected for each
        file. A new run starts with none.
        """
        found = ctx.scratch.get(_KEY)
        if not isinstance(found, cls) or found.run is not ctx.lowstate:
            found = ctx.scratch[_KEY] = cls(ctx.lowstate)
        return found

    @classmethod
    def of_file(cls, ctx: Context, name: str) -> Mapping[str, list[object]] | None:
        """Map of accumulator name to the list of its texts for one file; None if no state accumulated text for that
        file.
        """
        return cls.of(ctx).texts.get(name)

    @classmethod
    def for_state(cls, ctx: Context, name: str) -> list[str]:
        """List of the texts that the current state uses: those of the accumulators that require this state, or of all
        accumulators if none does.
        """
        texts = cls.of_file(ctx, name) or {}
        readers = cls.of(ctx).readers.get(name, {})
        own = [accumulator for accumulator in texts if ctx.low.get("__id__") in readers.get(accumulator, ())]
        return [str(text) for accumulator in own or texts for text in texts[accumulator]]
