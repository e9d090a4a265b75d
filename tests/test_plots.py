"""Drawings of patterns."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from cohegraph.graph.catalogue import catalogue
from cohegraph.plots.patterns import draw_catalogue, draw_pattern

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("k", [3, 4, 5])
def test_a_drawing_has_a_circle_a_sentence_and_an_arc_a_link(k):
    for pattern in catalogue(k).patterns:
        picture = ElementTree.fromstring(draw_pattern(pattern))
        assert len(list(picture.iter(f"{SVG}circle"))) == k
        assert len(list(picture.iter(f"{SVG}path"))) == len(pattern.edges)
        alone = sum("alone" in circle.get("class") for circle in picture.iter(f"{SVG}circle"))
        assert alone == k - len({node for edge in pattern.edges for node in edge})


def test_the_catalogue_shows_every_pattern_by_name():
    picture = ElementTree.fromstring(draw_catalogue(catalogue(4).patterns))
    assert [text.text for text in picture.iter(f"{SVG}text")] == [pattern.name for pattern in catalogue(4).patterns]
    assert ElementTree.fromstring(draw_catalogue([])) is not None
