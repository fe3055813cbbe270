"""S-expressions, the form of KiCad's files, and the turns of its coordinates."""

import math
import re
from collections.abc import Iterator
from uuid import NAMESPACE_OID, uuid5


def read(text: str) -> list:
    """An S-expression as nested lists; strings keep their quotes."""
    stack: list[list] = [[]]
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+', text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


def write(item: object, depth: int = 0) -> str:
    """The text of an S-expression."""
    if isinstance(item, float):
        return f"{round(item, 4):g}" if abs(item) < 1e5 else str(item)
    if not isinstance(item, (list, tuple)):
        return str(item)
    inner = " ".join(write(part, depth + 1) for part in item)
    return f"\n{'  ' * min(depth, 3)}({inner})" if depth < 3 else f"({inner})"


def quoted(text: str) -> str:
    """A string of an S-expression."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def identity(*names: object) -> str:
    """The same identity for the same thing, whenever the files are made."""
    return str(uuid5(NAMESPACE_OID, " ".join(map(str, names))))


def child(item: list, name: str) -> list:
    """The first part of an S-expression with this name; empty if there is none."""
    return next((part for part in item if isinstance(part, list) and part and part[0] == name), [])


def children(item: list, name: str) -> Iterator[list]:
    """Every part of an S-expression with this name."""
    return (part for part in item if isinstance(part, list) and part and part[0] == name)


def bare(text: str) -> str:
    """A string without its quotes."""
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if text[:1] == '"' else text


def numbers(item: list) -> list[float]:
    """The numbers of an S-expression, such as (at 1 2 90)."""
    return [float(part) for part in item[1:] if not isinstance(part, list)]


def turned(point: tuple[float, float], degrees: float) -> tuple[float, float]:
    """A point turned as KiCad turns it: counter-clockwise on the screen, y downwards."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return point[0] * c + point[1] * s, point[1] * c - point[0] * s
