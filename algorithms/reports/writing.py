"""Write reports: load the policies, solve for the reference, put both into one HTML file.

Browsers load no ES modules from `file://`. The page's modules are therefore joined into one script:
the imports are removed and the exported names are declared once, in the order of their use.
"""

import base64
import hashlib
import json
import os
import posixpath
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from algorithms.games import KUHN, Game
from algorithms.policies import Policy, load_policies, load_policy
from algorithms.policies.load import Source, is_file, open_source
from algorithms.reports.document import MAX_NODES, Entry, Json, Mode, game_document
from algorithms.self_play.curve import Curve, from_csv
from algorithms.support import budget, files
from algorithms.support.errors import UsageError

NO_REFERENCE = "none"
USUAL_REFERENCE = "cfr+:1000"
KUHN_REFERENCE = "nash:1/6"  # the middle one of Kuhn's equilibria: it reaches every information set
MAX_JSON_BYTES = 2**26  # of the file beside a model
RUN = ("holds", "steps", "seconds", "finished")  # shown under one heading
MAPS = ("config", "versions")  # each shown under its own name
HOME = "report/"  # of the page, below `kuhn_bridge.web`
STYLES = ("common.css", f"{HOME}report.css")
MAIN = f"{HOME}main.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async function )", re.MULTILINE)


def usual_reference(game: Game) -> str:
    """The default reference: an equilibrium or CFR+; none in large games, which take minutes."""
    if not game.fits_tree or game.tree.num_nodes > MAX_NODES:
        return NO_REFERENCE
    return KUHN_REFERENCE if game.name == KUHN else USUAL_REFERENCE


def report_document(  # noqa: PLR0913  # options by name
    given: Sequence[str | Source],
    game: Game | str | None = None,
    *,
    equilibrium: str | None = None,
    trust: bool = False,
    decisions: int = budget.DECISIONS,
    mode: Mode = "report",
) -> Json:
    """The document of the policies that `given` names, as in `sources.HELP`.

    `equilibrium` is shown beside them, once; by default `usual_reference`. In a game without an
    exact measure best responses learn from `decisions`; with 0 policies are not measured there.
    """
    opened = [open_source(one, trust=trust) for one in given]
    policies = dict(zip([one.name for one in opened], load_policies(opened, game), strict=True))
    game = next(iter(policies.values())).game
    beside = equilibrium or usual_reference(game)
    if beside != NO_REFERENCE:
        found = policies.pop(beside, None)
        policies[beside] = load_policy(beside, game, trust=trust) if found is None else found
    entries = [
        entry(source, policy, name=name, decisions=decisions)
        for (source, policy), name in zip(policies.items(), policy_names([*policies]), strict=True)
    ]
    reference = None if beside == NO_REFERENCE else entries[-1]
    return game_document(game, entries, reference, mode=mode)


def write_document(path: str | Path, document: Json) -> int:
    """Write a document as a self-contained page, and return its size in bytes."""
    content = page_html(document).encode()
    files.write_bytes(path, content)
    return len(content)


def entry(
    source: str, policy: Policy, *, name: str = "", decisions: int = budget.DECISIONS
) -> Entry:
    """A policy with its measure, and with the curve and settings stored beside its file."""
    name = name or source
    measure: Any = policy.measure() if policy.game.is_exact else None
    curve, notes = (curve_beside(source), notes_beside(source)) if is_file(source) else ((), {})
    if measure is None and decisions:
        from algorithms.lower_bound import bound_with_bar

        measure = bound_with_bar(name, policy, decisions=decisions)
        notes["lower bound"] = {
            "decisions per response": measure.decisions,
            "hands to measure it": measure.hands,
            **{f"response of player_{seat.seat}": seat.chosen.candidate for seat in measure.seats},
        }
    return Entry(name=name, policy=policy, measure=measure, curve=curve, notes=notes)


def policy_names(sources: Sequence[str]) -> list[str]:
    """Names of policies in a report: files without folders, or without those that all share."""
    names = [Path(source).name if is_file(source) else source for source in sources]
    if len(set(names)) == len(names):
        return names
    paths = {source: Path(source).absolute() for source in sources if is_file(source)}
    shared = os.path.commonpath([path.parent for path in paths.values()])
    return [str(paths[one].relative_to(shared)) if one in paths else one for one in sources]


def curve_beside(source: str) -> Curve:
    """The learning curve in the `.csv` beside a policy's file; empty if there is none."""
    try:
        return from_csv(Path(source).with_suffix(".csv"))
    except (OSError, UsageError):
        return ()


def notes_beside(source: str) -> dict[str, dict[str, Any]]:
    """Settings and versions in the `.json` beside a model; empty if there are none."""
    path = Path(source).with_suffix(".json")
    try:
        noted = json.loads(files.read_bytes(path, max_bytes=MAX_JSON_BYTES))
    except (OSError, ValueError, RecursionError):  # a UsageError is a ValueError
        return {}
    noted = noted if isinstance(noted, dict) else {}
    found = {"run": {name: noted[name] for name in RUN if name in noted}}
    found |= {name: noted[name] for name in MAPS if isinstance(noted.get(name), dict)}
    return {name: values for name, values in found.items() if values}


def page_html(document: dict[str, Any]) -> str:
    """The whole page in one file, whose security policy allows no other code and loads nothing."""
    style, script = "\n".join(map(_text, STYLES)), joined_script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # In JSON this is the same text, but it cannot end the script element around it.
    data = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
    return _filled(
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />',
        f"<style>{style}</style>",
        f'<script type="application/json" id="document">{data}</script>\n'
        f'    <script type="module">{script}</script>',
    )


def page_assets(document: dict[str, Any]) -> dict[str, bytes]:
    """The files of the page for a server, by path, with the document as a file of its own."""
    links = "".join(f'<link rel="stylesheet" href="/{name}" />' for name in STYLES)
    # The server's headers have the security policy.
    html = _filled("", links, f'<script type="module" src="/{MAIN}"></script>')
    names = (*STYLES, *_modules(MAIN), "favicon.svg")
    return {
        **{f"/{name}": _text(name).encode() for name in names},
        "/index.html": html.encode(),
        "/document.json": json.dumps(document).encode(),
    }


def joined_script() -> str:
    """The page's modules as one script, each after those that it imports."""
    texts = map(_text, _modules(MAIN))
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _modules(name: str, found: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The modules that a module needs, each after those it imports, itself last."""
    for path in _IMPORT.findall(_text(name)):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if target not in found:
            found = _modules(target, found)
    return (*found, name)


def _text(name: str) -> str:
    return (resources.files("kuhn_bridge.web") / name).read_text(encoding="utf-8")


def _filled(policy: str, style: str, script: str) -> str:
    """The page's HTML with its three marks replaced."""
    start, *parts = re.split("<!-- (?:policy|style|script) -->", _text(f"{HOME}report.html"))
    filled = zip((policy, style, script), parts, strict=True)
    return start + "".join(f"{content}{part}" for content, part in filled)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
