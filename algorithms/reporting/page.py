"""The page around a document: one self-contained HTML file, or the files of a server.

Browsers load no ES modules from `file://`. The modules are therefore joined into one script: the
imports are removed and the exported names are declared once, in the order of their use.
"""

import base64
import hashlib
import json
import posixpath
import re
from importlib import resources
from typing import Any

HOME = "report/"  # of the page, below `kuhn_bridge.web`
STYLES = ("common.css", f"{HOME}report.css")
MAIN = f"{HOME}main.js"
DATA = "document.json"
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async function )", re.MULTILINE)


def page_html(document: dict[str, Any]) -> str:
    """The whole page in one file, whose security policy allows no other code and loads nothing."""
    style = "\n".join(_text(name) for name in STYLES)
    script = joined(MAIN)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    data = f'<script type="application/json" id="document">{_safe_json(document)}</script>'
    parts = {
        "<!-- policy -->": head,
        "<!-- style -->": f"<style>{style}</style>",
        "<!-- script -->": f'{data}\n    <script type="module">{script}</script>',
    }
    return _filled(parts)


def page_assets(document: dict[str, Any]) -> dict[str, bytes]:
    """The files of the page for a server, by path, with the document as a file of its own."""
    links = "".join(f'<link rel="stylesheet" href="/{name}" />' for name in STYLES)
    parts = {
        "<!-- policy -->": "",  # the server's headers have it
        "<!-- style -->": links,
        "<!-- script -->": f'<script type="module" src="/{MAIN}"></script>',
    }
    files = {f"/{name}": _text(name).encode() for name in (*STYLES, *_modules(MAIN))}
    files["/index.html"] = _filled(parts).encode()
    files[f"/{DATA}"] = json.dumps(document).encode()
    files["/favicon.svg"] = _text("favicon.svg").encode()
    return files


def joined(main: str) -> str:
    """A module and its imports as one script, each module after those that it imports."""
    parts = (_EXPORT.sub("", _IMPORT.sub("", _text(name))) for name in _modules(main))
    return "\n".join(parts)


def _modules(name: str, found: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The modules that a module needs, each after those it imports, itself last."""
    for path in _IMPORT.findall(_text(name)):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if target not in found:
            found = _modules(target, found)
    return (*found, name)


def _text(name: str) -> str:
    return (resources.files("kuhn_bridge.web") / name).read_text(encoding="utf-8")


def _filled(parts: dict[str, str]) -> str:
    """The page's HTML with its marks replaced; each mark occurs once."""
    html = _text(f"{HOME}report.html")
    for mark, part in parts.items():
        before, after = html.split(mark)
        html = f"{before}{part}{after}"
    return html


def _safe_json(document: dict[str, Any]) -> str:
    """JSON that cannot end the script element around it."""
    text = json.dumps(document, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
