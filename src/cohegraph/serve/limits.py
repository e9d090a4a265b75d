"""What a server takes on before it says that it is too much."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cohegraph.errors import CohegraphError, in_words


class Limits(BaseModel):
    """The limits of a server, each with a default that suits a machine with a few cores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("it takes no truth value")
        return value

    @classmethod
    def of(cls, changes: dict[str, Any]) -> Self:
        """The defaults with some changed."""
        try:
            return cls(**changes)
        except ValidationError as error:
            first = error.errors()[0]
            name, known = first["loc"][0], ", ".join(cls.model_fields)
            if name not in cls.model_fields:
                raise CohegraphError(f"There is no limit '{name}': choose from {known}.", code="no-limit") from None
            message = f"The limit {name}={first['input']} is not valid: {in_words(first)}."
            raise CohegraphError(message, code="bad-limit") from None

    body: int = Field(2_000_000, ge=1_000, description="Bytes of a request, or of one line of a stream.")
    texts: int = Field(256, ge=1, description="Texts in one request.")
    characters: int = Field(100_000, ge=1, description="Characters of one text.")
    sentences: int = Field(2_000, ge=1, description="Sentences in one text.")
    queue: int = Field(1_024, ge=1, description="Texts that wait at once; more are turned away.")
    batch: int = Field(32, ge=1, le=1_024, description="Texts that are scored together.")
    rescored: int = Field(
        1_000_000, ge=0, description="Characters of changed texts that an explanation may have scored again."
    )
    drain: float = Field(
        0.5, ge=0, le=60, description="Seconds that a server which is told to stop still takes on what arrives."
    )
    idle: float = Field(
        10, ge=0, le=3_600, description="Seconds that a server which is told to stop waits for a client to send more."
    )
