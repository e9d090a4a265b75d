"""Strings that can be written down: some that Python can hold are no text."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with characters that are no characters replaced one for one, so that all offsets stay."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def printable(name: str) -> str:
    """A name whose bytes are not text can be printed all the same."""
    return name.encode("utf-8", "replace").decode("utf-8")
