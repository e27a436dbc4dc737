"""file's inner functions, which users' modules call: beside real Salt, and one user's state that is written with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

SHA = hashlib.sha256(b"new\n").hexdigest()
MD5 = hashlib.md5(b"x").hexdigest()
SUMS = f"{MD5}  other\n{SHA}  app.tar\n{'a' * 64} *./source.bin\n"

#: name, source, source_hash, source_hash_name, user, group, mode, attrs, template, context, defaults, saltenv
_CHECK: list[Any] = ["D/old", "salt://new", "", None, None, None, None, None, None, None, None, "base"]


def check(**changes: Any) -> list[Any]:
    names = ("name", "source", "hash", "hash_name", "user", "group", "mode", "attrs", "template", "context", "defaults")
    return [changes.get(name, value) for name, value in zip(names, _CHECK, strict=False)] + ["base"]


#: name, template, source, source_hash, source_hash_name, user, group, mode, attrs, saltenv, context, defaults
def managed(source: str | None, digest: str = "", template: str | None = None, skip: bool = False) -> list[Any]:
    return ["D/old", template, source, digest, None, None, None, None, None, "base", None, None, skip]


CALLS: list[Call] = [
    ("file.extract_hash", ["D/sums", "", "app.tar"], {}),
    ("file.extract_hash", ["D/sums", "sha256", "/x/app.tar"], {}),
    ("file.extract_hash", ["D/sums", "", "", "http://h/source.bin"], {}),
    ("file.extract_hash", ["D/sums", "", "none", "", "other"], {}),
    ("file.extract_hash", ["D/sums", "md5", "none"], {}),
    ("file.extract_hash", ["D/old"], {}),
    ("file.get_source_sum", [], {"source_hash": SHA}),
    ("file.get_source_sum", [], {"source_hash": f"sha256={SHA.upper()}"}),
    ("file.get_source_sum", [], {"source_hash": "D/sums", "file_name": "/x/app.tar"}),
    ("file.get_source_sum", [], {"source_hash": "salt://sums", "source_hash_name": "other"}),
    ("file.source_list", ["salt://new", "h", "base"], {}),
    ("file.source_list", [["salt://none", "D/none", "D/old", "salt://new"], "h", "base"], {}),
    ("file.source_list", [[{"salt://none": "a"}, {"salt://new": "b"}], "h", "base"], {}),
    ("file.source_list", [["salt://none"], "h", "base"], {}),
    ("file.get_managed", managed("salt://new"), {}),
    ("file.get_managed", managed("salt://none"), {}),
    ("file.get_managed", managed("D/new"), {}),
    ("file.get_managed", managed("D/none"), {}),
    ("file.get_managed", managed(None), {}),
    ("file.check_managed_changes", check(), {}),
    ("file.check_managed_changes", check(source="salt://old"), {}),
    ("file.check_managed_changes", check(source="salt://old", mode="0600"), {}),
    ("file.check_managed_changes", check(name="D/absent"), {}),
    ("file.check_managed_changes", check(source="salt://none"), {}),
    ("file.check_managed_changes", check(template="jinja", source="salt://template", context={"who": "all"}), {}),
    ("file.check_managed_changes", check(source=None), {"contents": "text\n"}),
    ("file.check_managed_changes", check(source=None, user="root", group="root"), {"contents": "old\n"}),
    ("file.check_managed", check(source="salt://old"), {}),
    ("file.check_managed", check(source="salt://none"), {}),
    ("file.check_managed", check(name="D/absent"), {}),
    ("file.apply_template_on_contents", ["{{ a }}{{ b }}", "jinja", {"a": 1}, {"a": 0, "b": 2}, "base"], {}),
    ("file.manage_file", ["D/made", "", {}, "salt://new", {"hash_type": "sha256", "hsum": SHA}, None, None, None, None,
                          "base", ""], {}),
    ("file.manage_file", ["D/made", "", None, "salt://new", {"hash_type": "sha256", "hsum": SHA}, None, None, None, None,
                          "base", ""], {}),
    ("file.manage_file", ["D/old", "", None, "salt://new", {"hash_type": "sha256", "hsum": SHA}, None, None, "0640", None,
                          "base", ""], {}),
    ("file.manage_file", ["D/old", "D/template", None, "D/template", {"hash_type": "sha256", "hsum": "x"}, None, None, None,
                          None, "base", ""], {"skip_verify": True}),
    ("$", "grep -q who D/old", {}),
    ("file.manage_file", ["D/text", "", None, None, {}, None, None, None, None, "base", ""], {"contents": "one\ntwo"}),
    ("$", 'test "$(stat -c %s D/text)" = 7', {}),
    ("file.manage_file", ["D/none/x", "", None, None, {}, None, None, None, None, "base", ""], {"contents": "x"}),
    ("file.manage_file", ["D/none/x", "", None, None, {}, None, None, None, None, "base", "", True], {"contents": "x"}),
]  # fmt: skip

#: Number of a call -> why the answers are others.
DIFFERS: dict[int, str] = {}

USERS_STATE = """
def present(name, source, template=None):
    ret = {"name": name, "changes": {}, "result": True, "comment": ""}
    if __opts__["test"]:
        ret["result"], ret["comment"] = __salt__["file.check_managed"](
            name, source, "", None, None, None, None, None, template, {"who": "all"}, {}, __env__)
        return ret
    sfn, source_sum, comment = __salt__["file.get_managed"](
        name, template, source, "", None, None, None, None, None, __env__, {"who": "all"}, {})
    if comment:
        ret["result"], ret["comment"] = False, comment
        return ret
    return __salt__["file.manage_file"](
        name, sfn, ret, source, source_sum, None, None, None, None, __env__, "", template=template)
"""


@pytest.fixture
def tree(plain: PlainMinion) -> PlainMinion:
    for name, text in {"new": "new\n", "old": "old\n", "template": "for {{ who }}\n", "sums": SUMS}.items():
        plain.write(name, text)
    return plain


def placed(directory: Path) -> list[Call]:
    directory.mkdir()
    for name, text in {"old": "old\n", "new": "new\n", "sums": SUMS, "template": "for {{ who }}\n"}.items():
        (directory / name).write_text(text)
    found: list[Call] = json.loads(json.dumps(CALLS).replace("D/", f"{directory}/"))
    return found


@pytest.mark.oracle
def test_as_salt(tree: PlainMinion, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tree.context

    class Templates:
        def render(self, text: str, engine: str, context: Any, **more: Any) -> str:
            import jinja2

            return jinja2.Template(text, keep_trailing_newline=True).render(context)

    templates: Any = Templates()
    monkeypatch.setattr(tree, "context", lambda **changes: made(**{"host": Host(), "templates": templates, **changes}))
    mine, stock = tmp_path / "ours", tmp_path / "salts"
    told = json.loads(json.dumps(ours(tree.call, placed(mine))).replace(str(mine), "D"))
    opts = {"file_roots": {"base": [str(tree.tree)]}}
    answers = salts(oracle, tmp_path / "salt", placed(stock), opts=opts)
    answers = json.loads(json.dumps(answers).replace(str(stock), "D"))
    rows = zip(range(len(CALLS)), CALLS, told, answers, strict=True)
    differing = [f"{number} {call}\n  {a}\n  {b}" for number, call, a, b in rows if a != b and number not in DIFFERS]
    assert not differing, "\n".join(differing)


def test_a_users_state(tree: PlainMinion) -> None:
    own = tree.extension_dir / "states" / "mine.py"
    own.parent.mkdir(parents=True)
    own.write_text(USERS_STATE)
    (tree.root / "etc").mkdir()
    tree.opts["test"] = True
    ctx = tree.context(test=True)
    entry = ctx.states["mine.present"](name="/etc/motd", source="salt://new")
    assert (entry["result"], entry["comment"]) == (
        None,
        "The following values are set to be changed:\nnewfile: /etc/motd\n",
    )
    tree.opts["test"] = False
    for _ in range(2):
        entry = tree.state("mine.present", name="/etc/motd", source="salt://new")
    assert (tree.root / "etc/motd").read_text() == "new\n"
    assert (entry["result"], entry["changes"]) == (True, {})
    entry = tree.state("mine.present", name="/etc/motd", source="salt://none")
    assert entry["result"] is False
    assert "salt://none" in entry["comment"]
    assert list((tree.root / "tmp").glob("*") if (tree.root / "tmp").exists() else ()) == []


def test_ignored_differences_are_refused(tree: PlainMinion) -> None:
    with pytest.raises(InvocationError, match="ignore_ordering: only the state"):
        tree.call("file.check_managed_changes", *check(), ignore_ordering=True)
    with pytest.raises((CommandError, InvocationError)):
        tree.call("file.get_source_sum", source_hash="nonsense")
