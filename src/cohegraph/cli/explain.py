"""``cohegraph explain``: why a document has its level."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cohegraph.cli.options import Device, EncoderPlace, ModelName, ParserPlace, Threads, VectorsPlace, set_threads
from cohegraph.cli.output import console, plain, print_json, say
from cohegraph.corpora.tables import decoded, is_table, read_plain_text
from cohegraph.errors import CohegraphError
from cohegraph.files import write_atomically
from cohegraph.models import folder_of, load

if TYPE_CHECKING:
    from cohegraph.explain.explanation import Explanation, Link

_LONGEST_SENTENCE = 90
_MOST_PATTERNS = 5


def explain(
    file: Annotated[str | None, typer.Argument(help="A text file, or - for standard input.")] = None,
    model: ModelName = None,
    against: Annotated[Path | None, typer.Option(help="An earlier version of the text, to say what changed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as one JSON object.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page in one file, with the picture.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture alone.")] = None,
    what_if: Annotated[
        int, typer.Option(min=0, help="Of how many sentences, from the loosest, the removal and move are tried.")
    ] = 12,
    parser: ParserPlace = None,
    vectors: VectorsPlace = None,
    encoder: EncoderPlace = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Show why a document has its level.

    What each pattern of connected sentences counts for and against it, which sentences hang loose, what their removal
    or move would change (found by really scoring the changed text), and which training documents connect alike.
    """
    file = file or _default_input()
    text = _text(file)
    _check_targets([one for one in (html, svg) if one is not None], [file, *([] if against is None else [against])])
    before = None if against is None else _text(str(against))
    folder = folder_of(model)
    # These import torch, which takes seconds: what is wrong with the input is said before.
    from cohegraph.explain.arcs import draw_arcs
    from cohegraph.explain.compare import compare
    from cohegraph.explain.explain import explain as why
    from cohegraph.explain.render import report

    set_threads(threads)
    loaded = load(folder, parser=parser, vectors=vectors, encoder=encoder, device=device)
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
            _print_lines(comparison.in_sentences())


def _check_targets(targets: list[Path], sources: list[Path | str]) -> None:
    """Raise before any work is done where a file cannot be written, or would take the place of another."""
    for number, target in enumerate(targets):
        if any(target.resolve() == Path(other).resolve() for other in (*sources, *targets[:number])):
            raise CohegraphError(f"{target} is named twice: write to another file.", code="named-twice")
        if target.is_dir():
            raise CohegraphError(f"{target} is a folder: name a file to write to.", code="is-a-folder")
        if not os.access(target.parent, os.W_OK):
            raise CohegraphError(
                f"Nothing can be written to {target.parent}: choose a folder that is there.", code="cannot-write"
            )


def _write(place: Path, content: str) -> None:
    write_atomically(place, content)
    say(f"Written to {place}.")


def _default_input() -> str:
    if sys.stdin.isatty():
        raise CohegraphError(
            "Name a file to explain, or - to type or pipe a text: cohegraph explain FILE.txt", code="no-input"
        )
    return "-"


def _text(name: str) -> str:
    if name != "-" and is_table(Path(name)):
        raise CohegraphError(
            f"{name} is a table, and explain takes a single text: name a text file, or assess the table.",
            code="is-a-table",
        )
    text = decoded(sys.stdin.buffer.read(), "Standard input") if name == "-" else read_plain_text(Path(name))
    if not text.strip():
        raise CohegraphError(
            f"{'Standard input' if name == '-' else name} has no text to explain.", code="missing-text"
        )
    return text


def _print(found: Explanation, name: str) -> None:
    verdict = found.verdict
    sure = f" ({found.sureness})" if found.sureness else ""
    score = "" if verdict.score is None else f" Score {verdict.score:.0f} of 100."
    shares = ", ".join(f"{level} {100 * probability:.0f} %" for level, probability in verdict.probabilities.items())
    line = f"{name}: {verdict.level}{sure}.{score}{f' {shares}.' if shares else ''}"
    console().print(*plain(line), style="bold")
    for notice in found.notices:
        console().print(*plain(notice), style="yellow")
    if found.note:
        console().print(*plain(f"Model: {found.model}. {found.note}"), style="dim")
    console().print(_sentences(found))
    if found.shares is not None and verdict.level is not None:
        console().print(_patterns(found))
    if found.neighbours:
        alike = ", ".join(f"{one.id} ({one.level}, {one.similarity:.2f})" for one in found.neighbours)
        _print_lines([f"Training documents that connect alike: {alike}."])


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        console().print(*plain(line))


def _sentences(found: Explanation) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    scored = found.verdict.score is not None
    table.add_column("", justify="right")
    table.add_column("sentence", overflow="fold")
    table.add_column("linked with")
    for name in ("score without it", "score if moved") if scored else ():
        table.add_column(name, justify="right")
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
        kinds.setdefault(link.other(number), []).append(link.kind)
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


def _patterns(found: Explanation) -> Table:
    """The text and the strongest patterns, with what they add to the logit of each level."""
    shares = found.shares
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("what counts")
    table.add_column("times", justify="right")
    if shares is None:
        return table
    for level in shares.logits:
        table.add_column(*plain(level), justify="right")
    rest = shares.patterns[_MOST_PATTERNS:]
    rows = [("the wording of the text", "", shares.text)]
    rows += [(f"pattern {one.pattern}", str(one.count), one.logits) for one in shares.patterns[:_MOST_PATTERNS]]
    if rest:
        together = {level: sum(one.logits[level] for one in rest) for level in shares.logits}
        rows.append((f"{len(rest)} more patterns", str(sum(one.count for one in rest)), together))
    for name, times, logits in (*rows, ("sum (logit)", "", shares.logits)):
        table.add_row(*plain(name, times, *(f"{value:+.3f}" for value in logits.values())))
    return table
