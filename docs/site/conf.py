"""Sphinx settings of the documentation site: ``make docs`` builds it. Source: docs/decisions/0021-the-documentation-site.md"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

from pygments.lexers.templates import YamlJinjaLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

_ROOT = Path(__file__).resolve().parents[2]

project = "Saltern"
author = "the Saltern authors"
version = release = runpy.run_path(str(_ROOT / "libs/statecore/model/salt_version.py"))["SALTERN_VERSION"]

# Blocks of YAML in the pages are SLS, which may hold Jinja.
lexers["yaml"] = YamlJinjaLexer()

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "index"
exclude_patterns = ["site/**"]

myst_enable_extensions = ["deflist"]
# Anchors as on code hosts: the pages are read there, too.
myst_heading_anchors = 4
# A page begins with its title, and decisions have sections without one.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = f"Saltern {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_favicon = "static/favicon.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# What a prompt shows is not copied.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e6e", "color-brand-content": "#0b6e6e"},
    "dark_css_variables": {"color-brand-primary": "#5fc9c3", "color-brand-content": "#5fc9c3"},
}
# The same commit gives the same bytes.
html_last_updated_fmt = None

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")


def outward(text: str, page: Path) -> str:
    """Return a page with each link that leads out of docs/ replaced by the file's name: the site has no other files."""

    def named(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(_ROOT / "docs"):
            return link[0]
        path = os.path.relpath(target, _ROOT)
        words = link[1].strip("`")
        return f"`{path}`" if path.endswith(words) or words in (".", "") else f"{link[1]} (`{path}`)"

    return _LINK.sub(named, text)


#: Page -> pages below it, which its menu lists.
_BELOW = {
    "decisions/README": "0*",
    "operations/README": "*\nrunbooks/README",
    "reference/README": "**",
}


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    source[0] = outward(source[0], page)
    source[0] = _OF_DIRECTORIES.sub(lambda link: f"({link[1]}README.md)", source[0])
    if below := _BELOW.get(name):
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:maxdepth: 1\n\n{below}\n```\n"


#: A link to a directory of pages means its README.md.
_OF_DIRECTORIES = re.compile(r"\(((?:\.\./)*[a-z-]+/)\)")


def setup(app: Sphinx) -> None:
    """Register the changes to a page's text."""
    app.connect("source-read", _read)
