"""What limits the verdict on a document: a sentence each, with a code."""

from collections.abc import Iterator, Mapping
from itertools import chain

from cohegraph.assessment import Notice
from cohegraph.settings import Settings
from cohegraph.systems.system import System

# Above this share of unknown nouns the links mean little; below this number of nouns the share means nothing.
_UNKNOWN_SHARE = 0.5
_FEWEST_NOUNS = 4
_UNSEEN_SHARE = 0.1
_PLAINLY_UNLIKE = 1.1
# Documents with one of these have no verdict.
VOID = frozenset({"no-sentence", "no-token"})
_Limits = Iterator[tuple[str, str]]


def notices_of(
    counts: Mapping[str, int], system: System, settings: Settings, unlikeness: float | None
) -> tuple[Notice, ...]:
    """What limits the verdict on a document with these counts; what the system does not read cannot limit it."""
    too_little, left_out = _too_little(counts, system, settings), _left_out(counts, system)
    found = chain(too_little, left_out, _strange(counts, settings, unlikeness or 0.0))
    return tuple(Notice(sentence, code) for code, sentence in found)


def _too_little(counts: Mapping[str, int], system: System, settings: Settings) -> _Limits:
    """What a document lacks."""
    sentences, nouns, k = counts["sentences"], counts["nouns"], settings.subgraphs.k
    of_levels, has_patterns = settings.objective.is_of_levels, "unseen_subgraphs" in counts
    void = "there is no verdict, and the probabilities mean nothing" if of_levels else "there is no verdict"
    fewest = system.fewest_sentences(settings)
    if not sentences:
        yield "no-sentence", f"There is no sentence: {void}."
    elif has_patterns and sentences - counts["dropped_sentences"] < k:
        yield "few-sentences", f"Fewer than {k} sentences: its wording alone decides, not how its sentences connect."
    elif has_patterns and not nouns and settings.links.linkers == ("nouns",):
        yield "no-noun", "There is no noun, so no sentence connects to another."
    elif not has_patterns and sentences < fewest:
        yield "few-sentences", f"Fewer than {fewest} sentences: this system sees hardly anything in it."
    if nouns >= _FEWEST_NOUNS and counts["unknown_nouns"] > _UNKNOWN_SHARE * nouns:
        yield "unknown-nouns", "Most nouns are unknown to the word vectors: is the text English?"
    if sentences and counts.get("read_tokens") == 0:
        yield "no-token", f"This system can read no token of it: {void}."


def _left_out(counts: Mapping[str, int], system: System) -> _Limits:
    """What of a document was not read."""
    sentences, dropped, most = counts["sentences"], counts["dropped_sentences"], system.most_sentences
    if most is not None and sentences > most:
        yield "unread-sentences", f"Of {sentences} sentences the first {most} were read."
    if counts["cut_tokens"] and not system.reads.isdisjoint({"vector", "states"}):
        yield "cut", f"{counts['cut_tokens']} of {counts['tokens']} tokens were cut at the encoder's limit."
    if dropped and "patterns" in system.reads:
        yield "dropped-sentences", f"{dropped} short sentences were left out of the graph."


def _strange(counts: Mapping[str, int], settings: Settings, unlikeness: float) -> _Limits:
    """What the model has not seen in training."""
    unseen, subgraphs = counts.get("unseen_subgraphs", 0), counts["subgraphs"]
    if unseen > _UNSEEN_SHARE * subgraphs:
        yield "unseen-patterns", f"{unseen} of {subgraphs} subgraphs have a pattern that no training document has."
    if counts["sentences"] and unlikeness > 1:
        # For a text just beyond the border a factor would say nothing.
        closer = f"at least {unlikeness:.1f} times closer" if unlikeness >= _PLAINLY_UNLIKE else "closer"
        why = f"99 % of them are {closer} to their average"
        yield "unlike", f"It is unlike the texts that the model learnt from ({why}): the verdict may mean little."
    if settings.language.expected == "english" and not counts["english"]:
        yield "not-english", "It does not look like English: a verdict on another language means nothing."
