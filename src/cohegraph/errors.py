"""Errors that a user can fix: one sentence each, no traceback."""

from collections.abc import Mapping
from typing import Any

_WHOLE, _NUMBER, _OBJECT = "it must be a whole number", "it must be a number", "it must be an object with fields"
# What pydantic complains of, by its names for it, in words for people.
_IN_WORDS = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field here",
    "string_type": "it must be a text",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "the number is too large",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "it must be a finite number",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "list_type": "it must be a list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "too_short": "it must have {min_length} or more, and has {actual_length}",
    "too_long": "it must have {max_length} at most",
    "greater_than_equal": "it must be {ge} or more",
    "greater_than": "it must be more than {gt}",
    "less_than_equal": "it must be {le} or less",
    "less_than": "it must be less than {lt}",
    "literal_error": "choose {expected}",
}


def in_words(complaint: Mapping[str, Any]) -> str:
    """One of the complaints of a pydantic.ValidationError, without a full stop."""
    known = _IN_WORDS.get(complaint["type"])
    if known is None:
        return str(complaint["msg"]).removeprefix("Value error, ").rstrip(".")
    return known.format(**complaint.get("ctx", {}))


class CohegraphError(ValueError):
    """Bad input, a missing part or a damaged file.

    The message is for people and says what is wrong and what to do. ``code`` is for programs: it stays the same when
    the message is reworded.
    """

    default_code = "bad-input"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code


class MissingPartError(CohegraphError):
    """A pretrained part (parser, word vectors, encoder) that is not installed or not found."""

    default_code = "missing-part"


class DamagedFileError(CohegraphError):
    """A file that is not what it claims to be: cut, changed, or of a format not known here."""

    default_code = "damaged-file"
