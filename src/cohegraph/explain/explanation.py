"""What an explanation holds: plain values, ready for JSON. Sentences are numbered from 1."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cohegraph.assessment import Sureness

Level = str | int | float | bool


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class Verdict(_Value):
    """A level, the probabilities of all levels from the lowest to the highest, and a score."""

    level: Level | None = Field(description="The most probable level; none where there is no sentence.")
    probabilities: dict[str, float]
    score: float | None = Field(
        description="The expected level from 0, surely the lowest, to 100, surely the highest; none where the order of "
        "the levels is not known."
    )


class Share(_Value):
    """What a pattern adds to the logit of each level, and how it got there."""

    pattern: str
    edges: list[tuple[int, int]] = Field(description="The links of the pattern, between its sentences in text order.")
    k: int
    links: str = Field("", description="The kind of links that it is made of, where kinds are counted by themselves.")
    count: int = Field(description="How many subgraphs of the document have the pattern.")
    weight: float = Field(description="Equation 1 of the paper: its weight in the document.")
    logits: dict[str, float]


class Shares(_Value):
    """The logit of each level as a sum: what each pattern adds, and what the document's own text adds."""

    logits: dict[str, float]
    text: dict[str, float]
    patterns: list[Share]


class Noun(_Value):
    """A noun of a sentence, and where it stands in the whole text."""

    text: str
    start: int
    end: int


class Link(_Value):
    """A link from a sentence to a later one: its kind, how strong it is, and the words behind it, if there are any."""

    source: int
    target: int
    kind: str
    strength: float
    source_words: str = ""
    target_words: str = ""

    def other(self, sentence: int) -> int:
        """The sentence at the other end."""
        return self.target if self.source == sentence else self.source

    @property
    def words(self) -> str:
        """The words behind it: of both sentences, of one of them, or none."""
        if self.source_words and self.target_words:
            return f"{self.source_words} – {self.target_words}"
        return f"'{self.source_words or self.target_words}'" if self.source_words or self.target_words else ""

    def in_words(self) -> str:
        """The words behind it, with its kind if they are of one sentence alone; its kind if there are none."""
        if self.source_words and self.target_words:
            return self.words
        return f"{self.words}, {self.kind}" if self.words else self.kind


class Move(_Value):
    """What the verdict would be if a sentence stood elsewhere: really rescored, and the best of all places tried."""

    to: int = Field(description="The number that the sentence would have.")
    places: int = Field(description="How many places were tried.")
    verdict: Verdict


class WhatIf(_Value):
    """What the verdict would be without a sentence, and with it in the best other place."""

    removed: Verdict | None = Field(description="None where it is the only sentence.")
    moved: Move | None = Field(description="None where there is no other place.")


class SentenceView(_Value):
    """A sentence: where it stands, its nouns, whether it has a link, and how firmly it is connected."""

    number: int
    start: int
    end: int
    text: str
    nouns: list[Noun]
    links: int = Field(description="How many links it has to sentences within the window.")
    loose: bool = Field(description="It has no link to any sentence within the window.")
    left_out: bool = Field(description="It is too short to be part of the graph.")
    connection: float = Field(
        description="The mean strength of its relation to all sentences within the window, linked or not."
    )
    what_if: WhatIf | None = Field(None, description="None where it was not asked for.")


class NeighbourView(_Value):
    """A training document that connects its sentences as this one does."""

    id: str
    level: Level
    similarity: float
    text: str | None = None


class Explanation(_Value):
    """A verdict and all that is behind it."""

    model: str
    note: str = Field(description="What whoever made the model says of it.")
    verdict: Verdict
    sureness: Sureness | None
    levels: list[Level] = Field(description="From the lowest to the highest.")
    notices: list[str] = Field(description="What limits the verdict, a sentence each.")
    notice_codes: list[str] = Field(description="The code of each notice, which does not change with its wording.")
    unlikeness: float | None
    counts: dict[str, int]
    window: int = Field(description="How many sentences are looked at together.")
    kinds: list[str] = Field(description="The kinds of links that the model looks for.")
    text: str
    sentences: list[SentenceView]
    links: list[Link]
    loosest: list[int] = Field(description="The sentences from the least to the most firmly connected.")
    shares: Shares | None = Field(description="None where the model is not on the corpus graph.")
    neighbours: list[NeighbourView] | None = Field(description="None where the model keeps no training documents.")

    @property
    def level(self) -> Level | None:
        """The level of the text."""
        return self.verdict.level

    @property
    def score(self) -> float | None:
        """Its score from 0 to 100, if there is one."""
        return self.verdict.score

    @property
    def by_nouns_only(self) -> bool:
        """Whether nouns, or their spelling, make all links."""
        return set(self.kinds) <= {"nouns", "spelling"}

    def links_of(self) -> dict[int, list[Link]]:
        """The links of each sentence, by its number."""
        found: dict[int, list[Link]] = {sentence.number: [] for sentence in self.sentences}
        for link in self.links:
            found[link.source].append(link)
            found[link.target].append(link)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.model_dump(mode="json")
