"""What a text looks like on the page."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohegraph.text.form import form_of

PROSE = (
    "The ferry leaves at six, when the harbour is still dark. Most of the passengers work on the other side. They know "
    "each other by sight and seldom talk. Mrs Boyle sells them tea from a cart; she has done so for twenty years. On "
    "Fridays she brings a cake, and nobody asks what it costs."
)
SAMPLES = {
    "code": (
        "import os\n\ndef walk(path):\n    for name in os.listdir(path):\n        yield os.path.join(path, name)\n",
        "const app = express();\napp.get('/', (req, res) => {\n  res.send('hello');\n});\napp.listen(3000);",
        "<html>\n<body>\n<h1>Title</h1>\n<p>Some text here.</p>\n</body>\n</html>",
        '#include <stdio.h>\nint main(void) {\n    printf("%d", 3);\n    return 0;\n}',
    ),
    "table": (
        "Name\tAge\tCity\nAnna\t34\tOslo\nBen\t28\tLima\nCleo\t51\tCairo",
        "| year | sales | profit |\n|---|---|---|\n| 2019 | 12 | 3 |\n| 2020 | 14 | 4 |",
        "id,name,price,stock\n1,lamp,20.5,3\n2,chair,45.0,7\n3,desk,120,1",
        "Item        Qty   Price\nApples       3     2.40\nBread        1     3.10\nCheese       2     8.00",
    ),
    "list": (
        "- Check the oil\n- Replace the filter\n- Rotate the tires\n- Call the garage",
        "1. Preheat the oven.\n2. Mix the flour and the butter.\n3. Add two eggs.\n4. Bake for forty minutes.",
        "a) the tent\nb) two blankets\nc) the stove",
    ),
    "chat": (
        "Ana: hey are you coming tonight?\nLuis: not sure yet\nAna: come on\nLuis: ok maybe after 9\nAna: great",
        "[12:01] <mike> anyone here?\n[12:02] <sue> yes\n[12:02] <mike> build is broken again\n[12:03] <sue> looking",
        "12:31 - Tom: did you get it\n12:33 - Eva: no\n12:33 - Eva: still waiting\n12:40 - Tom: ok",
    ),
    "lines": (
        "The river keeps its counsel in the reeds,\nAnd evening lays a hand upon the hill;\n"
        "The heron, standing grey among the weeds,\nIs patient, as the water here is still.",
        "i carry the kettle\nto the window\nwhere the frost\nhas drawn its maps\nand nobody\nis awake",
        "milk\neggs\nbread\ntwo onions\nolive oil\ndish soap",
        "hey\nwhat's up\nnm u?\nsame lol\nwanna grab food later\nsure where",
        "Markets rally after rate decision\nStorm closes schools in the north\nMayor defends new budget",
    ),
    "prose": (
        "",
        "hi",
        PROSE,
        '"Are you coming?" she asked.\n"In a minute," he said.\nShe waited by the door.\n"It is late," she said.',
        "The train was late.\nNobody minded much.\nWe had the evening before us.",
        "Dear Ms Okafor,\n\nThank you for your letter of 3 May. We have looked into the delay.\n\n"
        "The parcel was sent to the wrong depot. It left there this morning.\n\nYours sincerely,\nTomas Brandt",
    ),
}


@pytest.mark.parametrize(("form", "text"), [(form, text) for form, texts in SAMPLES.items() for text in texts])
def test_forms(form: str, text: str) -> None:
    assert form_of(text) == form


@given(st.integers(56, 100), st.booleans())
def test_prose_in_lines_is_prose(width: int, twice: bool) -> None:
    paragraphs = [textwrap.fill(PROSE, width)] * (2 if twice else 1)
    assert form_of("\n\n".join(paragraphs)) == "prose"


@given(st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp"])))
def test_one_line_is_prose(text: str) -> None:
    assert form_of(text) == "prose"


@given(st.text())
def test_any_text_has_a_form(text: str) -> None:
    assert form_of(text) in SAMPLES
