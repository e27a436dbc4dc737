"""APT sources (sources.list(5)): one-line format (``deb [signed-by=...] URI SUITE COMPONENT...``) and stanzas (deb822,
``.sources``).

Comments, order and other lines of a file are kept. Only changed sources are rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from statecore.model.text_lines import lines_of

TYPES = ("deb", "deb-src")

#: Arguments of ``pkg.mod_repo`` with APT, and those of other package managers, which are ignored: one state may have the
#: arguments of all.
ARGUMENTS = frozenset(
    {"comps", "architectures", "dist", "trusted", "file", "disabled", "enabled", "comments", "key_url", "key_text"}
    | {
        "clean_file",
        "aptkey",
        "keyid",
        "keyserver",
        "ppa",
        "ppa_auth",
        "consolidate",
        "saltenv",
        "refresh",
        "refresh_db",
    }
    | {"exact", "copr", "keyid_ppa"}
    | {
        "humanname",
        "baseurl",
        "mirrorlist",
        "metalink",
        "gpgkey",
        "gpgcheck",
        "repo_gpgcheck",
        "priority",
        "gpgautoimport",
    }
    | {"basedir", "exclude", "includepkgs", "sslverify", "metadata_expire", "type", "failovermethod", "cost"}
)

_LINE = re.compile(
    r"^(?P<disabled>#+\s*)?(?P<type>deb|deb-src)\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>cdrom:\[[^\]]*\]\S*|\S+)\s+(?P<rest>[^#]*)"
    r"(?:#(?P<comment>.*))?$"
)
_TAG = re.compile(r"^(?P<tag>[A-Za-z][A-Za-z0-9-]*):[ \t]*(?P<value>.*)$")

_FALSE = ("no", "false", "without", "off", "disable", "0")


@dataclass(frozen=True, slots=True)
class AptSource:
    """One APT source: a package type, URI and suite, with its components and options."""

    type: str
    uri: str
    dist: str
    comps: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    signed_by: str = ""
    trusted: bool | None = None
    disabled: bool = False
    comment: str = ""
    #: All options as they are written, including "arch", "signed-by" and "trusted".
    options: Mapping[str, str] = field(default_factory=dict)
    #: The line as it is in the file; "" for a source in a stanza.
    written: str = ""

    @property
    def line(self) -> str:
        """The APT source in one-line format (``deb URI SUITE COMPONENT...``)."""
        options = {key: value for key, value in self.options.items() if key not in ("arch", "signed-by", "trusted")}
        own = {
            "arch": ",".join(self.architectures),
            "signed-by": self.signed_by,
            "trusted": "yes" if self.trusted else "",
        }
        # Options that are already in the line keep their order.
        ordered = {key: own.get(key, options.get(key, "")) for key in [*self.options, *own]}
        bracketed = " ".join(f"{key}={value}" for key, value in ordered.items() if value)
        words = [self.type, f"[{bracketed}]" if bracketed else "", self.uri, self.dist, *self.comps]
        line = " ".join(word for word in words if word)
        return f"{'# ' if self.disabled else ''}{line}{f' #{self.comment}' if self.comment else ''}"

    def same_place(self, other: AptSource) -> bool:
        """Return True if both APT sources have the same type, URI and suite, and a common component."""
        return ((self.type, self.uri.rstrip("/"), self.dist) == (other.type, other.uri.rstrip("/"), other.dist)) and (
            not other.comps or bool({*self.comps} & {*other.comps})
        )


@dataclass(frozen=True, slots=True)
class Stanza:
    """One stanza of an APT ``.sources`` file (deb822)."""

    lines: tuple[str, ...]

    def get(self, tag: str) -> str:
        """Return the value of a field of the APT stanza, with its lines joined; "" if the field is missing."""
        found: list[str] = []
        inside = False
        for line in self.lines:
            if line.startswith("#"):
                continue
            match = _TAG.match(line)
            if match:
                inside = match["tag"].lower() == tag.lower()
                found += [match["value"].strip()] if inside else []
            elif inside:
                found.append(line.strip())
        return "\n".join(found).strip()

    def words(self, tag: str) -> list[str]:
        """List of the words in a field of the APT stanza."""
        return self.get(tag).split()

    def with_field(self, tag: str, value: str) -> Stanza:
        """Return the APT stanza with another value of a field; "" removes the field."""
        lines: list[str] = []
        inside = done = False
        for line in self.lines:
            match = None if line.startswith("#") else _TAG.match(line)
            if match:
                inside = match["tag"].lower() == tag.lower()
                if inside and value and not done:
                    lines.append(f"{match['tag']}: {value}")
                    done = True
            if not inside or line.startswith("#"):
                lines.append(line)
        if value and not done:
            lines.append(f"{tag}: {value}")
        return Stanza(tuple(lines))

    def sources(self) -> Iterator[AptSource]:
        """Yield one APT source for each combination of type, URI and suite of the stanza."""
        trusted = self.get("Trusted").lower()
        common = AptSource(
            type="",
            uri="",
            dist="",
            comps=tuple(self.words("Components")),
            architectures=tuple(self.words("Architectures")),
            signed_by=self.get("Signed-By"),
            trusted=trusted not in _FALSE if trusted else None,
            disabled=self.get("Enabled").lower() in _FALSE,
        )
        for uri in self.words("URIs"):
            for suite in self.words("Suites"):
                for each in self.words("Types"):
                    yield replace(common, type=each, uri=uri, dist=suite)


def parse_line(text: str) -> AptSource | None:
    """Return the APT source, enabled or disabled, on a line of sources.list; None for any other line."""
    match = _LINE.match(text.strip())
    rest = match["rest"].split() if match else []
    if match is None or not rest:
        return None
    options = dict(word.partition("=")[::2] for word in (match["options"] or "").split())
    trusted = options.get("trusted", "").lower()
    return AptSource(
        type=match["type"],
        uri=match["uri"],
        dist=rest[0],
        comps=tuple(rest[1:]),
        architectures=tuple(part for part in options.get("arch", "").split(",") if part),
        signed_by=options.get("signed-by", ""),
        trusted=trusted not in _FALSE if trusted else None,
        disabled=bool(match["disabled"]),
        comment=match["comment"] or "",
        options=options,
        written=text.strip(),
    )


def sources(text: str, *, stanzas: bool) -> list[AptSource]:
    """List of all APT sources in the text of a file, including disabled ones. ``stanzas``: the file has the deb822
    format.
    """
    if stanzas:
        return [source for stanza in _stanzas(text) if isinstance(stanza, Stanza) for source in stanza.sources()]
    return [source for line in lines_of(text) if (source := parse_line(line)) is not None]


def by_stanza(text: str, *, stanzas: bool) -> list[list[AptSource]]:
    """List of the APT sources in the text of a file, as ``sources`` has them, in lists of those that are of one stanza. A source
    of a line is alone in its list.
    """
    if stanzas:
        return [list(stanza.sources()) for stanza in _stanzas(text) if isinstance(stanza, Stanza)]
    return [[source] for source in sources(text, stanzas=False)]


def with_source(
    text: str, wanted: AptSource, found: AptSource | None, *, stanzas: bool, comments: Sequence[str] = ()
) -> str:
    """Return the text of an APT sources file with ``wanted`` in place of ``found``, or at the end if ``found`` is None.

    ``comments`` are written after a line or above a stanza.
    """
    if stanzas:
        blocks = _stanzas(text)
        for at, block in enumerate(blocks):
            if found is not None and isinstance(block, Stanza) and found in list(block.sources()):
                blocks[at] = _changed(block, wanted, comments)
                return "".join(str_of(each) for each in blocks)
        new = _changed(Stanza(()), wanted, comments)
        if not text.strip():
            # Text without a newline at its end would join with the stanza's first field.
            return str_of(new)
        return f"{text}{'' if text.endswith(chr(10)) else chr(10)}\n{str_of(new)}"
    line = replace(wanted, comment=f" {' '.join(comments)}" if comments else wanted.comment).line
    lines = lines_of(text, keepends=True)
    for at, old in enumerate(lines):
        if found is not None and parse_line(old) == found:
            lines[at] = f"{line}\n"
            return "".join(lines)
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{line}\n"


def without(text: str, gone: AptSource, *, stanzas: bool) -> str:
    """Return the text of an APT sources file without the components of the source ``gone``. If no component is left,
    the source is removed.
    """
    if stanzas:
        blocks = [each for block in _stanzas(text) for each in _reduced(block, gone)]
        while blocks and isinstance(blocks[-1], str) and not blocks[-1].strip():
            blocks.pop()
        return "".join(str_of(each) for each in blocks)
    lines = []
    for line in lines_of(text, keepends=True):
        source = parse_line(line)
        if source is not None and source.same_place(gone) and source.architectures == gone.architectures:
            left = tuple(each for each in source.comps if gone.comps and each not in gone.comps)
            if not left:
                continue
            line = replace(source, comps=left).line + "\n"
        lines.append(line)
    return "".join(lines)


def str_of(block: Stanza | str) -> str:
    """Return the text of an APT stanza; other parts of the file, which are texts already, are returned unchanged."""
    return block if isinstance(block, str) else "".join(f"{line}\n" for line in block.lines)


def _stanzas(text: str) -> list[Stanza | str]:
    """List of the parts of an APT ``.sources`` file in order: a Stanza for each stanza, a text for each empty line and
    each comment between stanzas.
    """
    found: list[Stanza | str] = []
    block: list[str] = []

    def close() -> None:
        if any(not line.startswith("#") for line in block):
            found.append(Stanza(tuple(block)))
        elif block:
            found.append("".join(f"{line}\n" for line in block))
        block.clear()

    for line in lines_of(text):
        if line.strip():
            block.append(line)
        else:
            close()
            found.append("\n")
    close()
    return found


def _changed(stanza: Stanza, wanted: AptSource, comments: Sequence[str]) -> Stanza:
    """Return the APT stanza changed so that it includes the source ``wanted``. Its other suites, types and URIs stay."""
    for tag, value in (("Types", wanted.type), ("URIs", wanted.uri), ("Suites", wanted.dist)):
        if value.rstrip("/") not in [word.rstrip("/") for word in stanza.words(tag)]:
            stanza = stanza.with_field(tag, value)
    trusted = "" if wanted.trusted is None else "yes" if wanted.trusted else "no"
    for tag, value in (
        ("Components", " ".join(wanted.comps)),
        ("Architectures", " ".join(wanted.architectures)),
        ("Signed-By", wanted.signed_by),
        ("Trusted", trusted),
        ("Enabled", "no" if wanted.disabled else ""),
    ):
        if stanza.get(tag) != value and not (tag == "Enabled" and not value and stanza.get(tag).lower() == "yes"):
            stanza = stanza.with_field(tag, value)
    if comments:
        stanza = Stanza(
            (*(f"# {each}" for each in comments), *(line for line in stanza.lines if not line.startswith("#")))
        )
    return stanza


def _reduced(block: Stanza | str, gone: AptSource) -> list[Stanza | str]:
    """List with the stanza without the APT source ``gone``; [] if nothing of the stanza is left.

    Text between stanzas, and stanzas without the source, are returned unchanged.
    """
    if isinstance(block, str):
        return [block]
    meant = [each for each in block.sources() if each.same_place(gone) and each.architectures == gone.architectures]
    if not meant:
        return [block]
    left = [each for each in meant[0].comps if gone.comps and each not in gone.comps]
    if left:
        return [block.with_field("Components", " ".join(left))]
    for tag, value in (("Suites", gone.dist), ("Types", gone.type), ("URIs", gone.uri)):
        words = [word for word in block.words(tag) if word.rstrip("/") != value.rstrip("/")]
        if words:
            return [block.with_field(tag, " ".join(words))]
    return []
