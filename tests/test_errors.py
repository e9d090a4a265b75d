"""Errors: a message for people, a code for programs."""

from __future__ import annotations

import copy
import pickle

import pytest

from cohegraph.errors import CohegraphError, DamagedFileError, MissingPartError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CohegraphError("a"), "bad-input"),
        (CohegraphError("a", code="missing-column"), "missing-column"),
        (MissingPartError("a"), "missing-part"),
        (DamagedFileError("a"), "damaged-file"),
        (DamagedFileError("a", code="two-columns"), "two-columns"),
    ],
)
def test_errors_keep_type_message_and_code_between_processes(error, code):
    for found in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(found), str(found), found.code) == (type(error), "a", code)
        assert isinstance(found, ValueError)
