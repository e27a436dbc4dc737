"""The compatibility package, used from a user's module as Salt's own is."""

from __future__ import annotations

import pytest

CALLS = [
    ("salt.utils.data.traverse_dict_and_list({'a': [{'b': 1}]}, 'a:b')", 1),
    (
        "salt.utils.data.is_true('TRUE'), salt.utils.data.is_true('0'), salt.utils.data.is_true('no')",
        (True, False, False),
    ),
    ("salt.utils.data.filter_by({'x': 1}, 'k', {'k': 'x'})", 1),
    ("salt.utils.dictupdate.update({'a': {'b': 1}}, {'a': {'c': 2}})", {"a": {"b": 1, "c": 2}}),
    ("salt.utils.dictupdate.merge({'a': [1]}, {'a': [2]}, merge_lists=True)", {"a": [1, 2]}),
    ("salt.utils.json.loads('[1]')", [1]),
    ("salt.utils.yaml.safe_load('a: 1')", {"a": 1}),
    ("salt.utils.yaml.safe_dump({'a': 1})", "{a: 1}\n"),
    ("salt.utils.path.which('sh') is not None, salt.utils.path.which('nosuchthing')", (True, None)),
    ("salt.utils.path.join('/a', '/b')", "/a/b"),
    ("salt.utils.platform.is_linux(), salt.utils.platform.is_windows()", (True, False)),
    ("salt.utils.stringutils.to_unicode(b'a'), salt.utils.stringutils.to_bytes('a')", ("a", b"a")),
    ("salt.utils.args.clean_kwargs(a=1, __pub_jid=2), salt.utils.args.split_input('a, b')", ({"a": 1}, ["a", "b"])),
    ("salt.utils.hashutils.sha256_digest('')[:8]", "e3b0c442"),
    ("salt.utils.files.fopen(__file__).read()[:6]", "import"),
]


@pytest.mark.parametrize(("expression", "value"), CALLS)
def test_calls(shelf, expression, value):
    module = ".".join(expression.split(".")[:3])
    shelf.write("modules/own.py", f"import {module}\ndef f():\n    return {expression}\n")
    assert shelf.context().call("own.f") == value
