"""Takes the pictures of the page for the documentation: ``python docs/screenshots.py`` from the project's root.

It starts the server with the model that comes with cohegraph, and drives Chromium.
"""

from __future__ import annotations

import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

DOCS = Path(__file__).parent
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking".split()
STRANGER = "The shepherd could play the flute, although he had never learned to read. "


def main() -> None:
    """Write page.png (light, wide) and page-phone.png (dark, narrow)."""
    text = (DOCS.parent / "examples" / "connected.txt").read_text("utf-8")
    first, rest = text.split(". ", 1)
    changed = f"{first}. {STRANGER}{rest}"
    command = [Path(sys.executable).parent / "cohegraph", "serve", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            address = re.search(r"http://[\d.:]+", server.stderr.readline())[0]
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            for name, scheme, size in (("page", "light", (1100, 1290)), ("page-phone", "dark", (400, 1250))):
                page = browser.new_page(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
                page.goto(address)
                show(page, changed)
                Image.open(BytesIO(page.screenshot())).convert("RGB").save(DOCS / f"{name}.png", optimize=True)
            browser.close()
        finally:
            server.terminate()


def show(page: Page, text: str) -> None:
    """The verdict on a text, with its loose sentence chosen and its changes tried."""
    page.fill("#text", text)
    expect(page.locator("#status")).to_have_attribute("data-state", "done")
    page.locator(".cg-arcs .sentence.loose").first.focus()
    expect(page.locator(".chosen-sentence .what-if [data-change]").first).to_be_visible(timeout=60_000)
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    main()
