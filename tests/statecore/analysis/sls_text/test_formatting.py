"""The formatter: what it makes of a text, and that it never changes what the text says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from statecore.analysis.sls_text.formatting import formatted
from statecore.analysis.sls_text.lines import read
from statecore.model import yaml

ROOT = Path(__file__).parents[4]

#: (name, before, after)
CASES = [
    ("levels", "x:\n    pkg.installed:\n        - name: y\n", "x:\n  pkg.installed:\n    - name: y\n"),
    ("lists in the key's column", "include:\n- a\nx:\n  y:\n  - z: 1\n", "include:\n  - a\nx:\n  y:\n    - z: 1\n"),
    ("lists in lists", "x:\n  y:\n    - a:\n        - b\n", "x:\n  y:\n    - a:\n      - b\n"),
    ("maps in lists", "x:\n- a: 1\n  b: 2\n-   c: 3\n    d: 4\n", "x:\n  - a: 1\n    b: 2\n  - c: 3\n    d: 4\n"),
    ("blanks", "x:   \n  y:    z   # why\n", "x:\n  y: z   # why\n"),
    ("a key without value and a comment", "x:    # why\n  y: z\n", "x:    # why\n  y: z\n"),
    ("empty lines", "\n\nx: 1\n\n\n\ny: 2\n\n\n", "x: 1\n\ny: 2\n"),
    ("no newline", "x: 1", "x: 1\n"),
    ("delimiters", "x: {{y}}\n{%if a%}\n{%- endif-%}\n", "x: {{ y }}\n{% if a %}\n{%- endif -%}\n"),
    ("nested statements stay", "{%   set a = 1 %}\n", "{%   set a = 1 %}\n"),
    ("comments move", "x:\n    # why\n    y: z\n", "x:\n  # why\n  y: z\n"),
    (
        "blocks move whole",
        "x:\n    y: |\n        a  \n          b\n\n\n\n        c\n",
        "x:\n  y: |\n      a  \n        b\n\n\n\n      c\n",
    ),
    ("kept newlines", "x: |+\n  a\n\n\n", "x: |+\n  a\n\n\n"),
    (
        "statements in blocks",
        "x:\n    y: |\n        a\n{% if b %}\n        c\n{% endif %}\n",
        "x:\n  y: |\n      a\n{% if b %}\n      c\n{% endif %}\n",
    ),
    (
        "quoted text of several lines",
        'x:\n    y: "a\n      b   \n\n\n      c"\n',
        'x:\n  y: "a\n    b   \n\n\n    c"\n',
    ),
    ("brackets of several lines", "x:\n    y: [a,\n        b]\n", "x:\n  y: [a,\n      b]\n"),
    ("a tag that makes structure", "x:\n    {{ y }}\n    z:   1   \n", "x:\n    {{ y }}\n    z:   1   \n"),
    ("no YAML", "x: [\n   y  \n", "x: [\n   y  \n"),
    ("tabs", "x:\n\ty: 1  \n", "x:\n\ty: 1  \n"),
    ("Python", "#!py\ndef run():\n        return {}\n\n\n\n", "#!py\ndef run():\n        return {}\n\n\n\n"),
    ("raw", "x: {% raw %}{{a}}{% endraw %}\n", "x: {% raw %}{{a}}{% endraw %}\n"),
    ("quotes in tags", "x: {{a['}}']}}\n", "x: {{ a['}}'] }}\n"),
    ("empty", "", ""),
]


@pytest.mark.parametrize(("before", "after"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_format(before: str, after: str) -> None:
    assert formatted(before) == after
    assert formatted(after) == after, "the formatter changes its own output"


def test_the_examples_are_in_this_form() -> None:
    changed = [
        str(path) for path in (ROOT / "examples").rglob("*.sls") if formatted(path.read_text()) != path.read_text()
    ]
    assert changed == []


_WORDS = st.sampled_from(
    [
        *(
            "x",
            "file.managed",
            "- ",
            "  ",
            "    ",
            ":",
            ": ",
            "\n",
            "\n  - ",
            "\n    ",
            "|",
            "|+",
            ">-",
            "'",
            '"',
            "[",
            "]",
            "{",
            "}",
        ),
        *("{{", "}}", "{{ a }}", "{%", "%}", "{% if a %}", "{% endif %}", "{#", "#}", "#", " # c", "é😀", "\t", "\r"),
        *("&a", "*a", "---"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=30).map("".join))
@example("\t\n  - ")
def test_any_text_keeps_its_data(text: str) -> None:
    made = formatted(text)
    assert formatted(made) == made
    if "{" in text and ("{{" in text or "{%" in text or "{#" in text):
        return
    assert _data(made) == _data(text) or _data(text) == _BROKEN


_BROKEN = "no YAML"


def _data(text: str) -> object:
    try:
        return yaml.load(text, yaml.SLS)
    except yaml.YamlFault:
        return _BROKEN


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=30).map("".join))
def test_any_text_is_read(text: str) -> None:
    """The reader for half-typed files never fails, and its entries lie inside the text."""
    found = read(text)
    for number, entry in enumerate(found.entries):
        assert entry.parent < number
        assert 0 <= entry.key_span.start <= entry.key_span.end <= len(found.lines[entry.line])
        assert entry.line <= entry.last < len(found.lines)
        assert found.above(entry.line, entry.column, entry.dash) is found.parent(entry)
    for line in range(len(found.lines)):
        assert found.place(found.offset(line, 0)) == (line, 0)
