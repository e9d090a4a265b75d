"""What drawings in plain SVG share: colours that follow the ground they stand on, in a page, a file and in print.

A page may set the variables itself; a file by itself follows the reader's choice of light or dark.
"""

import re
from collections.abc import Mapping
from html import escape

# Blue and orange can be told apart by nearly everybody, and what they tell is told by shape or width too.
_LIGHT = {"ink": "#1b1f24", "soft": "#5b6470", "ground": "#ffffff", "link": "#1f62a8", "loose": "#b35900"}
_DARK = {"ink": "#e8eaed", "soft": "#a3acb8", "ground": "#15181c", "link": "#6fb1f2", "loose": "#ffab4a"}

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def without_control(text: str) -> str:
    """The text with control characters, which neither XML nor HTML may have, replaced by a mark."""
    return _CONTROL.sub("\ufffd", text)


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--cg-{name}:{colour};" for name, colour in colours.items())


COLOURS = (
    f":root{{{_variables(_LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}"
    f"@media print{{:root{{{_variables(_LIGHT)}}}}}"
)


def picture(width: float, height: float, content: str, *, style: str = "", attributes: str = 'role="img"') -> str:
    """An SVG element; with ``style``, which a page that has it already leaves out, it is a file by itself."""
    rules = f"<style>{COLOURS}{style}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" style="--cg-width:{width:g}px" {attributes}>{rules}{content}</svg>'
    )


def attribute(value: object) -> str:
    """A value between the quotes of an attribute."""
    return escape(str(value), quote=True)
