"""``cohegraph cache``: what is kept of features that were computed, and whether it is whole."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cohegraph.cli import BAD_INPUT
from cohegraph.cli.output import complain, counted, show
from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings

app = typer.Typer(
    help="What is kept of features that were computed: in your cache, or in a folder of 'cohegraph featurize'.",
    no_args_is_help=True,
)
Folder = Annotated[Path | None, Argument(help="A folder of 'cohegraph featurize'; by default your cache of features.")]
_NOT_COMPLETE = "not complete: the same 'cohegraph featurize' computes the rest."


@app.command()
def info(folder: Folder = None) -> None:
    """Show where features are kept, how many, and how large they are."""
    from cohegraph.features.cache import FeatureCache
    from cohegraph.features.store import FeatureStore, unfinished_in

    if folder is None:
        about = FeatureCache().info()
        show(
            f"{about.folder}: {about.entries} entries (pattern counts or the vector of a text) and {about.sequences} "
            f"sequences of token vectors, {_megabytes(about.size)}. COHEGRAPH_CACHE names another place."
        )
        return
    begun = unfinished_in(folder)
    if begun is not None:
        so_far = f"{counted(begun.documents, 'document')} so far, in {counted(begun.whole, 'file')}"
        show(f"{folder}: {so_far}; {_NOT_COMPLETE}")
        return
    store, usual = FeatureStore(folder), Settings().flat()
    contents = store.contents
    changed = [f"{name}={value}" for name, value in store.settings.flat().items() if value != usual[name]]
    show(
        f"{folder}: features of {counted(len(store), 'document')} in {counted(len(contents.shards), 'file')}, "
        f"{_megabytes(store.size)}, with {contents.patterns} patterns and {contents.dimensions} dimensions."
    )
    show(*(f"{name}: {identity}" for name, identity in contents.parts.items()))
    show(f"settings: {', '.join(changed) or 'the defaults'}")


@app.command()
def verify(folder: Folder = None) -> None:
    """Check every file: damaged ones are removed from your cache, or listed, and can be computed again."""
    from cohegraph.features.cache import FeatureCache
    from cohegraph.features.store import FeatureStore, unfinished_in

    if folder is None:
        number, damaged = FeatureCache().verify(show_progress=True)
        removed = ", which are removed and will be computed again" if damaged else ""
        show(f"{number} entries looked at, {damaged} of them damaged{removed}.")
        if damaged:
            raise typer.Exit(BAD_INPUT)
        return
    begun = unfinished_in(folder)
    if begun is not None:
        show(f"{counted(begun.whole, 'file')} of {begun.files} in {folder} as they were written; {_NOT_COMPLETE}")
        if begun.whole < begun.files:
            raise typer.Exit(BAD_INPUT)
        return
    store = FeatureStore(folder)
    files, all_files = store.damaged(show_progress=True), counted(len(store.contents.shards), "file")
    for file in files:
        complain(f"{folder / file} is damaged or missing.")
    if files:
        remedy = "run the same 'cohegraph featurize' again to compute them"
        raise CohegraphError(
            f"{len(files)} of {all_files} in {folder} are damaged or missing: {remedy}.", code="damaged-file"
        )
    show(f"{all_files} in {folder} checked, all intact.")


@app.command()
def clear(folder: Folder = None, yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove all features that are kept; they can be computed again."""
    from cohegraph.features.cache import FeatureCache
    from cohegraph.features.store import is_store, remove_store
    from cohegraph.files import cache_folder

    if folder is not None and not is_store(folder):
        raise CohegraphError(f"{folder} holds no features.", code="no-features")
    place = folder or cache_folder()
    try:
        agreed = yes or typer.confirm(f"Remove the features in {place}?")
    except typer.Abort:
        raise CohegraphError(
            "Nothing was removed: add --yes to remove features without being asked.", code="not-confirmed"
        ) from None
    if not agreed:
        show("Nothing was removed.")
        return
    if folder is None:
        FeatureCache().clear()
    else:
        remove_store(folder)
    show(f"The features in {place} are removed.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} KB"
