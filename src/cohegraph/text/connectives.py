"""Explicit English discourse connectives: however, as a result, for example, and what they say.

Found by a list and rules of position, without a pretrained part. A connective *looks back* if it relates its sentence
to the one before: "However, it rained" and "It was, therefore, late" do, "He left because it rained" does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from cohegraph.text.document import Sentence

SENSES = ("contrast", "cause", "time", "addition", "condition", "example", "restatement")

# Where a connective stands:
# - start: at the beginning of the sentence
# - opening: at the beginning, before a comma or a subject ("after that he")
# - pause: at the beginning, before a comma
# - free: at the beginning, or set off by commas
# - bare: as free, and also next to the verb ("it is therefore")
# - tail: set off by commas, or at the end after a comma
# - clause: before a clause of the same sentence; it never looks back
_Place = Literal["start", "opening", "pause", "free", "bare", "tail", "clause"]

# Connectives by sense and place, each with what reads well in its place and has the opposite sense, if there is such.
_LISTS: tuple[tuple[str, _Place, str], ...] = (
    (
        "contrast",
        "start",
        """but > so; yet > so; and yet > and so; but still > and so; but then again; then again; still > so; in spite
        of this > because of this; in spite of that > because of that; having said that; be that as it may; even so
        > for this reason; all the same > for this reason; and still > and so""",
    ),
    ("contrast", "opening", "despite this > because of this; despite that > because of that; even then"),
    (
        "contrast",
        "pause",
        """that said > as a result; that being said > as a result; instead > accordingly; rather; alternatively;
        regardless > accordingly; anyway; anyhow; notwithstanding > accordingly; in any case; at any rate; in any
        event; in contrast to this > similarly""",
    ),
    (
        "contrast",
        "free",
        """however > therefore; on the other hand > as a result; on the other > as a result; on the contrary >
        accordingly; in contrast > similarly; by contrast > similarly; by comparison; conversely > similarly;
        contrariwise > similarly""",
    ),
    ("contrast", "bare", "nevertheless > therefore; nonetheless > therefore; none the less > therefore"),
    ("contrast", "tail", "though > therefore"),
    (
        "contrast",
        "clause",
        """although > because; though > because; even though > because; whereas > because; while > because; in spite of
        the fact that > because of the fact that; despite the fact that > because of the fact that""",
    ),
    (
        "cause",
        "start",
        """so > but; and so > and yet; so then; for; hence > nevertheless; for this reason > in spite of this; for that
        reason > in spite of that; for these reasons > in spite of this; for those reasons > in spite of that; for
        all these reasons > in spite of all this; as a result of this > in spite of this; it follows that; that is
        why; that's why; this is why; and hence > and yet""",
    ),
    (
        "cause",
        "opening",
        """because of this > despite this; because of that > despite that; due to this > despite this; in response""",
    ),
    (
        "cause",
        "free",
        """as a result > even so; as a consequence > even so; in consequence > even so; after all; accordingly >
        nevertheless""",
    ),
    ("cause", "bare", "therefore > however; thus > nevertheless; consequently > nevertheless"),
    (
        "cause",
        "clause",
        """because > although; because of > in spite of; since > although; so that; given that > even though; now that;
        inasmuch as > although; seeing that > although; which is why""",
    ),
    (
        "time",
        "start",
        """and then > and before that; but then; since then > until then; ever since; ever since then > until then;
        after which > before which; by then; by that time; at that time; at that moment; at this moment; at this
        point; at that point; just then; in the meantime; in the meanwhile; meanwhile; meantime; afterwards;
        afterward; soon afterwards > long before; soon after > long before; shortly afterwards > shortly before;
        shortly after > shortly before; not long after > not long before; not long afterwards > not long before;
        thereafter > until then; thereupon; eventually > initially; subsequently > previously; finally > first;
        until then > since then; till then > since then; from then on > until then; from that time on > until that
        time; from that moment > until that moment; at the same time; a moment later > a moment before; a few days
        later > a few days earlier; some time later > some time earlier; later on > earlier on; with that""",
    ),
    (
        "time",
        "opening",
        """after that > before that; after this > before this; before that > after that; before this > after this; by
        this time; at last > at first; simultaneously; the next day > the day before; the next morning > the morning
        before; the following day > the day before; the following morning > the morning before; the following year >
        the year before; the next year > the year before; soon; presently; this time; in the end > in the beginning;
        ultimately > originally""",
    ),
    ("time", "pause", "next > before that; later > earlier; earlier > later; previously > subsequently"),
    ("time", "bare", "then > before that"),
    (
        "time",
        "clause",
        """before > after; after > before; until > after; till > after; as soon as > before; once > before; whenever;
        when; every time""",
    ),
    (
        "addition",
        "start",
        """and > but; or; nor; neither; similarly > conversely; in the same way > by contrast; in much the same way >
        by contrast; in like manner > by contrast; on top of this; on top of that; not only that; and also > but
        not; what is more > even so; what's more > even so; in the first place; in the second place; first of all;
        second of all; firstly; secondly; thirdly; fourthly; lastly > firstly; by the same token > by contrast; for
        another thing; more importantly; most importantly""",
    ),
    (
        "addition",
        "opening",
        """in addition to this > in spite of this; in addition to that > in spite of that; to begin with; to start
        with; for one thing""",
    ),
    (
        "addition",
        "pause",
        """besides > however; further > however; again; equally > conversely; first > finally; second; third; fourth;
        fifth; last > first; last but not least; above all; better still; worse still; better yet; worse yet; worse;
        in turn; also > however; likewise > conversely""",
    ),
    (
        "addition",
        "free",
        """in addition > on the other hand; additionally > however; moreover > however; furthermore > however""",
    ),
    ("addition", "bare", "also; likewise > by contrast"),
    ("addition", "tail", "too; as well; in turn"),
    (
        "condition",
        "start",
        """otherwise > in that case; or else > in that case; if so > if not; if not > if so; in that case > otherwise;
        in such a case > otherwise; in such cases > otherwise; in that event > otherwise; under these circumstances;
        under such circumstances; under those circumstances; failing that; failing this""",
    ),
    ("condition", "opening", "in this case > otherwise"),
    (
        "condition",
        "clause",
        """if > unless; unless > if; even if > only if; only if > even if; provided that > unless; as long as > unless;
        so long as > unless; in case; on condition that > unless; in which case""",
    ),
    (
        "example",
        "free",
        """for example; for instance; as an example; as an illustration; by way of example; by way of illustration; to
        illustrate; in particular; e.g""",
    ),
    ("example", "pause", "specifically; more specifically; notably; particularly; especially"),
    ("restatement", "start", "in other words > by contrast; indeed > on the contrary; to sum up"),
    (
        "restatement",
        "pause",
        """overall; in general; generally; actually; in reality; in essence; in effect; simply put; in short; in brief;
        in sum; in summary; to summarize; to summarise; in conclusion; to conclude; on the whole; all in all; all
        told; put differently; put another way; put simply; to put it simply; to put it differently; to put it
        another way; to put it briefly; more precisely; more exactly; or rather; in truth; in a word; in a nutshell;
        to be precise; to be sure; that is; i.e; at bottom""",
    ),
    ("restatement", "free", "in fact > on the contrary; as a matter of fact > on the contrary; that is to say"),
    ("restatement", "tail", "indeed; in other words; in short; that is; in a word"),
)

_PRONOUNS = frozenset("i we you he she it they there one nobody everybody everyone someone somebody nothing".split())
_SUBJECTS = _PRONOUNS | frozenset(
    "the a an this these those my our your his her its their some many most all both each every no any such".split()
)
_AUXILIARIES = frozenset(
    "is are was were am be been has have had do does did can could will would shall should may might must".split()
)
_QUESTIONS = frozenset("what when where who why how if let now".split())
# Before other words than these, and without a comma, the word is no connective.
_ONLY_BEFORE: dict[str, frozenset[str]] = {
    "so": _SUBJECTS - {"many", "such"} | _QUESTIONS | {"that's", "it's", "i'm", "we're", "don't"},
    "still": _SUBJECTS | {"if", "when", "in"},
    "for": frozenset("i he she we they".split()),
    "however": _SUBJECTS - {"many"} | {"in", "if", "when", "as", "with", "at", "for", "on"},
    "finally": _SUBJECTS | {"in", "when", "after", "came"},
    "ever since": frozenset(),
    "soon after": frozenset(),
    "shortly after": frozenset(),
    "not long after": frozenset(),
    "in particular": _SUBJECTS,
    "now that": _SUBJECTS,
    "with that": _PRONOUNS,
    "neither": _AUXILIARIES,
    "similarly": _SUBJECTS | {"in", "when", "if", "with", "for"},
    "after all": _PRONOUNS,
    "thereafter": _SUBJECTS | {"in"},
    "at the same time": _SUBJECTS | {"in"},
    "on the other": frozenset(),
    "if not": frozenset(),
}
# Before these the words mean something else.
_NOT_BEFORE: dict[str, frozenset[str]] = {
    "yet": frozenset("another to again more".split()),
    "but": frozenset("for".split()),
    "and": frozenset("so".split()),
    "and so": frozenset("on forth".split()),
    "thus": frozenset("far".split()),
    "in addition": frozenset("to".split()),
    "in contrast": frozenset("to with".split()),
    "by comparison": frozenset("with to".split()),
    "as a result": frozenset("of".split()),
    "as a consequence": frozenset("of".split()),
    "in consequence": frozenset("of".split()),
    "in case": frozenset("of".split()),
    "because": frozenset("of".split()),
    "so that": frozenset("is was 's".split()),
    "as an example": frozenset("of".split()),
    "as an illustration": frozenset("of".split()),
    "then": frozenset("and unknown current existing".split()),
    "at that time": frozenset("of when".split()),
    "at that moment": frozenset("of when".split()),
    "at this moment": frozenset("of when".split()),
    "at that point": frozenset("of when where".split()),
    "at this point": frozenset("of when where".split()),
    "by that time": frozenset("of when".split()),
    "from that moment": frozenset("when".split()),
    "in the first place": frozenset("of".split()),
    "in the same way": frozenset("as that".split()),
    "in much the same way": frozenset("as that".split()),
    "also": frozenset("known called".split()),
    "as well": frozenset("as".split()),
    "if": frozenset("any not possible necessary needs need ever only and".split()),
}
# Nor are they connectives behind these.
_PASSIVE = frozenset(
    """is are was were be been being am get gets got has have had having not never n't already also he's she's it's
    they're we're you're i'm they've we've you've i've""".split()
)
_NOT_BEHIND: dict[str, frozenset[str]] = {
    "if": frozenset(
        """as what ask asks asked asking know knows knew see sees saw wonder wonders wondered wondering consider tell
        say said doubt sure certain""".split()
    ),
    "so that": frozenset("so much".split()),
    "given that": _PASSIVE,
    "provided that": _PASSIVE,
    "though": frozenset({"as"}),
}
# Within a sentence they relate its own parts, even between commas.
_OF_THIS_SENTENCE = frozenset({"that is", "that is to say", "in other words", "in short", "in a word"})
# What has the opposite sense next to a verb, where that differs.
_OPPOSITES_BY_VERB = {"then": "previously"}
# Subordinating words that are also prepositions or adverbs: before a clause, which begins with one of these.
_NEED_CLAUSE = frozenset("since before after until till once while though when".split())
_CLAUSE_BEGINS = _PRONOUNS - {"one"} | frozenset(
    {"i'm", "i've", "i'd", "he's", "he'd", "she's", "she'd", "it's", "they're"}
)
# Words before which a following "then", "also" or "therefore" relates the whole sentence to what was said.
_BEFORE_BARE = _PRONOUNS | _AUXILIARIES | frozenset({"this", "that"})
_COORDINATORS = frozenset("and but or so yet nor well".split())
# Beyond so many words a connective set off by commas belongs to a part of its sentence.
_FARTHEST, _FARTHEST_BARE = 12, 6

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_BEFORE_START = re.compile(r"[^\w,;:]*")
_PAUSE_BEFORE = re.compile(r"(?:,|--|[—–(])\s*[\"'“‘]?$")
_PAUSE_BEHIND = re.compile(r"[\"'”’]?\s*(?:,|--|[—–:)])")
_END = re.compile(r"[\s.!?;\"'”’)\]]*")
_BREAK = re.compile(r"[;:—–]|--|\b(?:and|but|or|because|if|that|which|who)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Connective:
    """A discourse connective.

    Args:
        text: As it is written.
        start: Where it starts in the document's text.
        end: Where it ends.
        sense: One of `SENSES`.
        opposite: What reads well in its place and has the opposite sense; empty if there is nothing.
        looks_back: Whether it relates its sentence to the previous one.
    """

    text: str
    start: int
    end: int
    sense: str
    opposite: str
    looks_back: bool


class _Entry(NamedTuple):
    """A word or phrase of the list."""

    words: tuple[str, ...]
    sense: str
    place: _Place
    opposite: str

    @property
    def name(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class _Found:
    """The words of an entry in a sentence, and what stands around them."""

    entry: _Entry
    number: int
    before: str
    written: str
    behind: str
    previous: str
    following: str
    first: str

    @property
    def paused(self) -> bool:
        """Whether a comma or the like follows."""
        return _PAUSE_BEHIND.match(self.behind) is not None

    @property
    def at_end(self) -> bool:
        """Whether the sentence ends here."""
        return _END.fullmatch(self.behind) is not None

    @property
    def after_pause(self) -> bool:
        """Whether a comma or the like stands before it."""
        return _PAUSE_BEFORE.search(self.before) is not None

    @property
    def at_start(self) -> bool:
        """Whether it begins the sentence, or follows an And or But that does."""
        if self.number == 0:
            return _BEFORE_START.fullmatch(self.before) is not None
        return self.number == 1 and self.first in _COORDINATORS

    @property
    def by_verb(self) -> bool:
        """Whether it stands next to a verb, without commas."""
        return self.entry.place == "bare" and self.previous in _BEFORE_BARE and not self.after_pause

    @property
    def in_first_part(self) -> bool:
        """Whether it belongs to the sentence as a whole rather than to a later part of it."""
        within = _PAUSE_BEFORE.sub("", self.before)
        if self.by_verb and ("," in within or self.number > _FARTHEST_BARE):
            return False
        return self.number <= _FARTHEST and not _BREAK.search(within)

    @property
    def opposite(self) -> str:
        """What has the opposite sense, with the capitals of what is written."""
        by_verb = self.by_verb and not self.at_start
        found = _OPPOSITES_BY_VERB.get(self.entry.name, self.entry.opposite) if by_verb else self.entry.opposite
        if len(self.written) > 1 and self.written.isupper():
            return found.upper()
        return found[:1].upper() + found[1:] if self.written[:1].isupper() else found

    def looks_back(self) -> bool | None:
        """Whether it relates the sentence to the previous one, or None if it is no connective."""
        if not self._goes_on():
            return None
        if self.entry.place == "clause":
            return False if self._begins_clause() else None
        if self.entry.place != "tail" and self.at_start:
            needed = {"opening": self.following in _SUBJECTS, "pause": False}
            return True if self.paused or needed.get(self.entry.place, True) else None
        return None if self.entry.place in ("start", "opening", "pause") else self._inside()

    def _goes_on(self) -> bool:
        """Whether the words around it let it be a connective."""
        name = self.entry.name
        if self.previous in _NOT_BEHIND.get(name, ()):
            return False
        if self.paused or self.at_end:
            return True
        if self.following in _NOT_BEFORE.get(name, ()):
            return False
        return name not in _ONLY_BEFORE or self.following in _ONLY_BEFORE[name]

    def _begins_clause(self) -> bool:
        """Whether a clause of the same sentence follows."""
        name = self.entry.name
        if self.paused or self.at_end or (name == "when" and self.number):
            return False
        if name in ("since", "while"):
            return self.before.rstrip().endswith(",") and self.following in _SUBJECTS
        return name not in _NEED_CLAUSE or self.following in _CLAUSE_BEGINS

    def _inside(self) -> bool | None:
        """The same within a sentence: set off by commas, at its end, or next to the verb."""
        if self.after_pause and (self.at_end or self.paused):
            return self.entry.name not in _OF_THIS_SENTENCE and self.in_first_part
        if self.entry.place == "tail":
            return None
        joined = self.after_pause or self.before.rstrip().endswith(";") or self.previous in ("and", "but")
        if joined:
            return None if self.entry.name == "also" else False
        return self.in_first_part if self.by_verb and self.following else None


def _entries() -> dict[str, tuple[_Entry, ...]]:
    """All entries by their first word, the longest first."""
    found: dict[str, list[_Entry]] = {}
    for sense, place, lines in _LISTS:
        for one in " ".join(lines.split()).split(";"):
            phrase, _, opposite = (part.strip() for part in one.partition(">"))
            words = tuple(phrase.split())
            found.setdefault(words[0], []).append(_Entry(words, sense, place, opposite))
    return {word: tuple(sorted(entries, key=lambda entry: -len(entry.words))) for word, entries in found.items()}


_ENTRIES = _entries()


@lru_cache(maxsize=4096)
def connectives_of(sentence: Sentence) -> tuple[Connective, ...]:
    """The connectives of a sentence, in reading order; of phrases that begin with the same word, the longest."""
    text = sentence.text
    spans = [one.span() for one in _WORD.finditer(text)]
    words = tuple(text[start:end].lower().replace("’", "'") for start, end in spans)
    found, number = [], 0
    while number < len(words):
        match = _match(text, words, spans, number) if words[number] in _ENTRIES else None
        if match is None:
            number += 1
            continue
        one, looks_back = match
        start, number = spans[number][0] + sentence.start, number + len(one.entry.words)
        end = start + len(one.written)
        found.append(Connective(one.written, start, end, one.entry.sense, one.opposite, looks_back))
    return tuple(found)


def _match(text: str, words: tuple[str, ...], spans: list[tuple[int, int]], number: int) -> tuple[_Found, bool] | None:
    """The longest connective that begins with a word, and whether it looks back."""
    for entry in _ENTRIES[words[number]]:
        behind = number + len(entry.words)
        if words[number:behind] != entry.words:
            continue
        own = spans[number:behind]
        # The words of an entry have nothing but space between them.
        if not all(text[one[1] : other[0]].isspace() for one, other in pairwise(own)):
            continue
        start, end = own[0][0], own[-1][1]
        found = _Found(
            entry,
            number,
            before=text[:start],
            written=text[start:end],
            behind=text[end:],
            previous=words[number - 1] if number else "",
            following=words[behind] if behind < len(words) else "",
            first=words[0],
        )
        looks_back = found.looks_back()
        if looks_back is not None:
            return found, looks_back
    return None
