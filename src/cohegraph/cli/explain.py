"""``cohegraph explain``: why a document has its level."""

import os
import sys
from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import console, counted, new_table, plain, print_json, say, show
from cohegraph.corpora.tables import decoded, is_table, read_plain_text
from cohegraph.errors import CohegraphError
from cohegraph.explain.explanation import Explanation, Link, Shares
from cohegraph.files import write_atomically
from cohegraph.models import folder_of, load

_LONGEST_SENTENCE = 90
_MOST_PATTERNS = 5


def explain(
    file: Annotated[str | None, Argument(help="A text file, or - for standard input.")] = None,
    model: options.ModelName = None,
    against: Annotated[Path | None, Option(help="An earlier version of the text, to say what changed.")] = None,
    as_json: Annotated[bool, Option("--json", help="Everything, as one JSON object.")] = False,
    html: Annotated[Path | None, Option(help="Write a page in one file, with the picture.")] = None,
    svg: Annotated[Path | None, Option(help="Write the picture alone.")] = None,
    what_if: Annotated[int, Option(min=0, help="How many sentences, loosest first, to try removing and moving.")] = 12,
    parser: options.ParserPlace = None,
    vectors: options.VectorsPlace = None,
    encoder: options.EncoderPlace = None,
    reader: options.ReaderPlace = None,
    heads: options.HeadsPlace = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
) -> None:
    """Explain why a document has its level.

    Shows what each pattern of connected sentences adds to or takes from it, which sentences are not linked to others,
    how the score changes when they are removed or moved (by scoring the changed text), and which training documents
    have similar connections.
    """
    file = file or options.standard_input("explain")
    text = _text(file)
    _check_targets([one for one in (html, svg) if one is not None], [file, *([] if against is None else [against])])
    before = None if against is None else _text(str(against))
    folder = folder_of(model)
    # These import torch, which takes seconds: what is wrong with the input is said before.
    from cohegraph.explain.arcs import draw_arcs
    from cohegraph.explain.compare import compare
    from cohegraph.explain.explain import explain as why
    from cohegraph.explain.render import report

    options.set_threads(threads)
    loaded = load(folder, parser=parser, vectors=vectors, encoder=encoder, reader=reader, heads=heads, device=device)
    found = why(loaded, text, what_if=what_if, rescore=lambda texts: loaded.assess(texts, show_progress=True))
    earlier = None if before is None else loaded.explain(before, what_if=0)
    comparison = None if earlier is None else compare(earlier, found)
    name = "standard input" if file == "-" else Path(file).name
    if html is not None:
        _write(html, report(found, name, earlier=earlier))
    if svg is not None:
        _write(svg, draw_arcs(found))
    if as_json:
        beside = {} if comparison is None else {"comparison": comparison.model_dump(mode="json")}
        print_json({"document": name, **found.to_dict(), **beside})
    elif html is None and svg is None:
        _print(found, name)
        if comparison is not None:
            show(*comparison.in_sentences())


def _check_targets(targets: list[Path], sources: list[Path | str]) -> None:
    """Raise before any work is done where a file cannot be written, or would take the place of another."""
    for number, target in enumerate(targets):
        if any(target.resolve() == Path(other).resolve() for other in (*sources, *targets[:number])):
            raise CohegraphError(f"{target} is named twice: write to another file.", code="named-twice")
        if target.is_dir():
            raise CohegraphError(f"{target} is a folder: name a file to write to.", code="is-a-folder")
        if not os.access(target.parent, os.W_OK):
            raise CohegraphError(f"{target.parent} is not a folder to write to: choose another.", code="cannot-write")


def _write(place: Path, content: str) -> None:
    write_atomically(place, content)
    say(f"Written to {place}.")


def _text(name: str) -> str:
    if name != "-" and is_table(Path(name)):
        raise CohegraphError(f"{name} is a table: name a text file, or assess the table.", code="is-a-table")
    text = decoded(sys.stdin.buffer.read(), "Standard input") if name == "-" else read_plain_text(Path(name))
    if not text.strip():
        source = "Standard input" if name == "-" else name
        raise CohegraphError(f"{source} has no text to explain.", code="missing-text")
    return text


def _print(found: Explanation, name: str) -> None:
    verdict = found.verdict
    sure = f" ({found.sureness})" if found.sureness else ""
    score = "" if verdict.score is None else f" Score {verdict.score:.0f} of 100."
    shares = ", ".join(f"{level} {100 * probability:.0f} %" for level, probability in verdict.probabilities.items())
    show(f"{name}: {verdict.level}{sure}.{score}{f' {shares}.' if shares else ''}", style="bold")
    show(*map(str, found.notices), style="yellow")
    if found.note:
        show(f"Model: {found.model}. {found.note}", style="dim")
    console().print(_sentences(found))
    if found.shares is not None and verdict.level is not None:
        console().print(_patterns(found.shares))
        if "rank score" in found.shares.logits:
            show("A rank score has no zero point: only its differences between texts count.", style="dim")
    if found.neighbours:
        alike = ", ".join(f"{one.id} ({one.level}, {one.similarity:.2f})" for one in found.neighbours)
        show(f"Training documents with similar connections: {alike}.")


def _sentences(found: Explanation) -> Table:
    scored = found.verdict.score is not None
    table = new_table("", "sentence", "linked with", right=("score without it", "score if moved") if scored else ())
    table.columns[0].justify = "right"
    links_of = found.links_of()
    for one in found.sentences:
        text = " ".join(one.text.split())
        shown = text if len(text) <= _LONGEST_SENTENCE else text[: _LONGEST_SENTENCE - 1] + "…"
        state = (
            "too short" if one.left_out else "loose" if one.loose else _linked(found, links_of[one.number], one.number)
        )
        row = plain(one.number, shown, state, *(_changes(found, one.number) if scored else ()))
        if one.loose:
            row[2].stylize("bold yellow")
        table.add_row(*row)
    return table


def _linked(found: Explanation, links: list[Link], number: int) -> str:
    """The sentences that a sentence is linked with; the kinds of their links, where there are several kinds."""
    kinds: dict[int, list[str]] = {}
    for link in links:
        # Words of one sentence alone are shown, such as However; two nouns would take too much room.
        word = "" if link.source_words and link.target_words else link.words
        kinds.setdefault(link.other(number), []).append(f"{link.kind} {word}".rstrip())
    several = len(found.kinds) > 1
    return ", ".join(f"{other} ({', '.join(kinds[other])})" if several else str(other) for other in sorted(kinds))


def _changes(found: Explanation, number: int) -> tuple[str, str]:
    """By how many points of 100 the score changes without a sentence, and with it in the best other place."""
    tried, score = found.sentences[number - 1].what_if, found.verdict.score or 0.0
    removed = moved = ""
    if tried is not None and tried.removed is not None and tried.removed.score is not None:
        removed = f"{tried.removed.score - score:+.1f}"
    if tried is not None and tried.moved is not None and tried.moved.verdict.score is not None:
        moved = f"{tried.moved.verdict.score - score:+.1f} as no. {tried.moved.to}"
    return removed, moved


def _patterns(shares: Shares) -> Table:
    """The text and the strongest patterns, with what they add to the logit of each level."""
    table = new_table("what counts", right=("times", *shares.logits))
    rest = shares.patterns[_MOST_PATTERNS:]
    rows = [("the wording of the text", "", shares.text)]
    rows += [(f"pattern {one.pattern}", str(one.count), one.logits) for one in shares.patterns[:_MOST_PATTERNS]]
    if rest:
        together = {level: sum(one.logits[level] for one in rest) for level in shares.logits}
        rows.append((counted(len(rest), "more pattern"), str(sum(one.count for one in rest)), together))
    for name, times, logits in (*rows, ("sum", "", shares.logits)):
        table.add_row(*plain(name, times, *(f"{value:+.3f}" for value in logits.values())))
    return table
