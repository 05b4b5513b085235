"""How text gets into a frame without loss, lone surrogates included.

JSON can carry half of a surrogate pair (``"\\ud800"``), and agents do send it. Arrow, Parquet, CSV and a terminal
cannot: they are UTF-8. So a frame holds a stand-in, the same code point moved to the private use area of plane 16
(U+D800 becomes U+10D800). The few characters that this takes away from private use are marked with U+10FFFD in front;
no other text changes, so ``arguments`` stays the JSON that it was. ``original`` turns a cell back.
"""

from __future__ import annotations

import re
from typing import Final

_SHIFT: Final = 0x100000
_MARK: Final = "\U0010fffd"
_TAKEN: Final = re.compile("[\ud800-\udfff\U0010d800-\U0010dfff\U0010fffd]")
_STORED: Final = re.compile("\U0010fffd(.)|[\U0010d800-\U0010dfff]", re.DOTALL)


def storable(text: str) -> str:
    """Return ``text`` in the form that a frame holds: itself, or with stand-ins for lone surrogates."""
    if text.isascii():
        return text
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return _TAKEN.sub(_stand_in, text)
    # The lead bytes of U+10Dxxx and U+10Fxxx: a search in bytes is far faster than one character by character.
    if b"\xf4\x8d" not in encoded and b"\xf4\x8f" not in encoded:
        return text
    return _TAKEN.sub(_stand_in, text)


def original(text: str) -> str:
    """Return the text that ``storable`` was given: with the lone surrogates that were sent."""
    return text if text.isascii() else _STORED.sub(_sent, text)


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(code + _SHIFT) if code < _SHIFT else _MARK + match[0]


def _sent(match: re.Match[str]) -> str:
    return match[1] or chr(ord(match[0]) - _SHIFT)
