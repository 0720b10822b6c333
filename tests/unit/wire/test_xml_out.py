"""XML text: what goes in comes out, or is visibly replaced."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.wire.scalars import NOT_XML
from berth.yard.wire.xml_out import escape


@settings(deadline=None, max_examples=300)
@given(st.text(st.characters(), max_size=40))
def test_escaped_text_is_read_back_by_an_xml_parser(text: str) -> None:
    """Every text parses; it comes back equal but for characters that XML cannot carry, which are U+FFFD."""
    element = ElementTree.fromstring(f"<a>{escape(text)}</a>".encode())
    assert (element.text or "") == NOT_XML.sub("\ufffd", text)
