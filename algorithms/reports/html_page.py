"""The report's page: its HTML, styles and modules, with the document in it.

Browsers load no ES modules from `file://`. In a file the page's modules are therefore joined into
one script: the imports are removed and the exported names are declared once, in the order of their
use. A server gives them as they are.
"""

import base64
import hashlib
import json
import posixpath
import re
from importlib import resources

from algorithms.reports.document import Json

PAGE_FOLDER = "report/"  # below `kuhn_bridge.web`
STYLESHEETS = ("common.css", f"{PAGE_FOLDER}report.css")
MAIN_MODULE = f"{PAGE_FOLDER}main.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async function )", re.MULTILINE)


def page_html(document: Json) -> str:
    """The whole page in one file, whose security policy allows no other code and loads nothing."""
    style = "\n".join(_web_file(name) for name in STYLESHEETS)
    script = joined_script()
    security_policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # In JSON this is the same text, but it cannot end the script element around it.
    data = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
    return _filled(
        policy=f'<meta http-equiv="Content-Security-Policy" content="{security_policy}" />',
        style=f"<style>{style}</style>",
        script=f'<script type="application/json" id="document">{data}</script>\n'
        f'    <script type="module">{script}</script>',
    )


def page_assets(document: Json) -> dict[str, bytes]:
    """The files of the page for a server, by path, with the document as a file of its own."""
    html = _filled(
        policy="",  # it is in the server's headers
        style="".join(f'<link rel="stylesheet" href="/{name}" />' for name in STYLESHEETS),
        script=f'<script type="module" src="/{MAIN_MODULE}"></script>',
    )
    names = (*STYLESHEETS, *_modules_needed_by(MAIN_MODULE), "favicon.svg")
    assets = {f"/{name}": _web_file(name).encode() for name in names}
    assets["/index.html"] = html.encode()
    assets["/document.json"] = json.dumps(document).encode()
    return assets


def joined_script() -> str:
    """The page's modules as one script, each after those that it imports."""
    texts = [_web_file(name) for name in _modules_needed_by(MAIN_MODULE)]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _modules_needed_by(name: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The modules that a module needs, each after those it imports, itself last."""
    for path in _IMPORT.findall(_web_file(name)):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if imported not in known:
            known = _modules_needed_by(imported, known)
    return (*known, name)


def _web_file(name: str) -> str:
    return (resources.files("kuhn_bridge.web") / name).read_text(encoding="utf-8")


def _filled(*, policy: str, style: str, script: str) -> str:
    """The page's HTML, in which each of the three comments is replaced once."""
    html = _web_file(f"{PAGE_FOLDER}report.html")
    before_policy, rest = html.split("<!-- policy -->")
    before_style, rest = rest.split("<!-- style -->")
    before_script, rest = rest.split("<!-- script -->")
    return f"{before_policy}{policy}{before_style}{style}{before_script}{script}{rest}"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
