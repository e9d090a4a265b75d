"""What goes wrong in a way that a user can mend: one sentence each, no traceback."""


class CohegraphError(ValueError):
    """Bad input, a missing part or a damaged file. The message says what is wrong and what to do."""


class MissingPartError(CohegraphError):
    """A pretrained part (parser, word vectors, encoder) that is not installed or not found."""


class DamagedFileError(CohegraphError):
    """A file that is not what it claims to be: cut, changed, or of a format not known here."""
