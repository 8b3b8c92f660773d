"""Names that try to control a terminal or to be read as markup, a graph of them, and what a terminal must not get."""

from __future__ import annotations

import re
from pathlib import Path

CONTROLS = "a\x1b]0;pwned\x07\x1b[2J\x1b[31mb\x9b2Jc\u202ed\re\bf\x0bg\x7fh"
"""OSC, CSI, C1, a direction override, carriage return, backspace, vertical tab, DEL."""
SHOWN = r"a\x1b]0;pwned\x07\x1b[2J\x1b[31mb\x9b2Jc\u202ed\x0de\x08f\x0bg\x7fh"
"""What a terminal shows in its place."""
MARKUP = "x[/bold] [red]y[/red] [link=http://evil]z[/link] :smile: [/nope] \\[b]"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Controls that no data may bring to a terminal; the line ends of a terminal are CR LF."""
STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K|\x1b\[1000C|\x1b\[[0-9]+[CD]")
"""What rich itself writes: colours, and the moves of its spinner."""


def write_hostile_graph(path: Path) -> Path:
    """N-Triples in which labels, keys, relations and literals are hostile."""
    controls = CONTROLS.encode("unicode_escape").decode()
    controls = re.sub(r"\\x(..)", r"\\u00\1", controls).replace("\\r", "\\u000D")
    markup = MARKUP.replace("\\", "\\\\")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    path.write_text(
        f'<http://x/a> {label} "{controls}" .\n'
        f'<http://x/b> {label} "{markup}" .\n'
        "<http://x/a> <http://x/[bold]r[/bold]> <http://x/b> .\n"
        "<http://x/[/red]key> <http://x/[bold]r[/bold]> <http://x/a> .\n"
        f'<http://x/b> <http://x/note> "{controls}" .\n'
        "<http://x/a> this line \x1b]0;pwned\x07 is bad\n" + "<http://x/a> <http://x/p> <http://x/b> .\n",
        encoding="utf-8",
    )
    return path
