"""Options of the file server that no role starts with."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.trees.served_files import file_server
from saltern.kit.trees.updates import mirrors


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fileserver_backend": ["rots"]}, "there is no file server backend 'rots'; the nearest is 'roots'"),
        ({"file_ignore_regex": ["("]}, r"file_ignore_regex: '\(' is not a valid regular expression"),
        (
            {"fileserver_backend": ["git"], "gitfs_remotes": [{"https://x/y": [{"rot": "a"}]}]},
            "gitfs remote 'https://x/y' has no parameter 'rot'; the nearest is 'root'",
        ),
        ({"ext_pillar": [{"git": [{"master https://x/y": [{"rot": "a"}]}]}]}, "git_pillar remote 'master https://x/y'"),
    ],
)
def test_what_cannot_be_served_is_named(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        file_server(MasterOptions(**options)) and mirrors(MasterOptions(**options))


def test_remotes_count_where_gitfs_is_switched_on() -> None:
    options = {"gitfs_remotes": ["https://x/y"]}
    assert mirrors(MasterOptions(**options)) == []
    (mirror,) = mirrors(MasterOptions(**options, fileserver_backend=["git"]))
    assert mirror.remote.url == "https://x/y"
