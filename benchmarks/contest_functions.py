"""Functions as tasks for `benchmarks/contest.py`: the right source, the examples of the task, and inputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

Given = tuple[object, ...]


class Function(NamedTuple):
    name: str
    source: str
    examples: tuple[Given, ...]
    inputs: Callable[[random.Random], Given]


def _numbers(chance: random.Random, most: int = 8, low: int = -9, high: int = 9) -> list[int]:
    return [chance.randint(low, high) for _ in range(chance.randint(0, most))]


def _text(chance: random.Random, letters: str = "abAB 12-_", most: int = 9) -> str:
    return "".join(chance.choice(letters) for _ in range(chance.randint(0, most)))


def _spans(chance: random.Random) -> list[tuple[int, int]]:
    starts = [chance.randint(0, 12) for _ in range(chance.randint(0, 5))]
    return [(start, start + chance.randint(0, 5)) for start in starts]


FUNCTIONS = (
    Function(
        "roman",
        """
def roman(number):
    if number < 1 or number > 3999:
        raise ValueError
    text = ''
    for value, sign in ((1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (50, 'L'),
                        (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')):
        while number >= value:
            text += sign
            number -= value
    return text
""",
        ((3,), (14,)),
        lambda chance: (chance.choice([chance.randint(-1, 60), chance.randint(1, 4001), 3999, 4000, 0]),),
    ),
    Function(
        "merged",
        """
def merged(spans):
    found = []
    for start, end in sorted(spans):
        if start > end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
""",
        (([(1, 2), (4, 6)],), ([(1, 4), (2, 5)],)),
        lambda chance: (_spans(chance),),
    ),
    Function(
        "seconds",
        """
def seconds(text):
    total, number, seen = 0, '', False
    for char in text:
        if char.isdigit():
            number += char
        elif char in 'hms' and number:
            total += int(number) * {'h': 3600, 'm': 60, 's': 1}[char]
            number, seen = '', True
        else:
            raise ValueError
    if number:
        if seen:
            raise ValueError
        total += int(number)
    return total
""",
        (("10s",), ("1h2m",)),
        lambda chance: (_text(chance, "0129hms", 6),),
    ),
    Function(
        "wrapped",
        """
def wrapped(text, width):
    lines, line = [], ''
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = line + ' ' + word if line else word
    if line:
        lines.append(line)
    return lines
""",
        (("a bb", 10), ("aaa bbb", 4)),
        lambda chance: (_text(chance, "ab  ", 16), chance.randint(1, 8)),
    ),
    Function(
        "median",
        """
def median(numbers):
    if not numbers:
        return None
    some = sorted(numbers)
    middle = len(some) // 2
    if len(some) % 2 == 1:
        return some[middle]
    return (some[middle - 1] + some[middle]) / 2
""",
        (([1, 2, 9],), ([5],)),
        lambda chance: (_numbers(chance),),
    ),
    Function(
        "search",
        """
def search(numbers, wanted):
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < len(numbers) and numbers[low] == wanted:
        return low
    return -1
""",
        (([1, 3, 5], 3), ([1, 3, 5], 4)),
        lambda chance: (sorted(_numbers(chance)), chance.randint(-9, 9)),
    ),
    Function(
        "version_less",
        """
def version_less(one, other):
    first = [int(part) for part in one.split('.')]
    second = [int(part) for part in other.split('.')]
    while len(first) < len(second):
        first.append(0)
    while len(second) < len(first):
        second.append(0)
    for left, right in zip(first, second):
        if left != right:
            return left < right
    return False
""",
        (("1.2", "1.3"), ("2.0", "1.9")),
        lambda chance: tuple(
            ".".join(str(chance.randint(0, 2)) for _ in range(chance.randint(1, 4))) for _ in range(2)
        ),
    ),
    Function(
        "leap_days",
        """
def leap_days(first, last):
    count = 0
    for year in range(first, last + 1):
        if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
            count += 1
    return count
""",
        ((2001, 2004), (2019, 2020)),
        lambda chance: (
            (start := chance.choice([1896, 1999, 2000, 2096, chance.randint(1890, 2110)])),
            start + chance.randint(-1, 12),
        ),
    ),
    Function(
        "camel",
        """
def camel(name):
    parts = [part for part in name.split('_') if part]
    if not parts:
        return ''
    head = parts[0].lower()
    return head + ''.join(part[0].upper() + part[1:].lower() for part in parts[1:])
""",
        (("a_b",), ("go_on",)),
        lambda chance: (_text(chance, "abAB__1", 10),),
    ),
    Function(
        "runs",
        """
def runs(text):
    found = []
    for char in text:
        if found and found[-1][0] == char and found[-1][1] < 9:
            found[-1] = (char, found[-1][1] + 1)
        else:
            found.append((char, 1))
    return ''.join(char if count == 1 else char + str(count) for char, count in found)
""",
        (("aab",), ("abc",)),
        lambda chance: (
            "".join(
                chance.choice("ab") * chance.choice([1, 2, 3, 9, 10]) for _ in range(chance.randint(0, 4))
            ),
        ),
    ),
    Function(
        "balanced",
        """
def balanced(text):
    opened = []
    pairs = {')': '(', ']': '['}
    for char in text:
        if char in '([':
            opened.append(char)
        elif char in pairs:
            if not opened or opened[-1] != pairs[char]:
                return False
            opened.pop()
    return not opened
""",
        (("(a)",), ("(",)),
        lambda chance: (chance.choice([_text(chance, "()[]a", 6), "([])", "[()](a)", "([)]", "(())[]"]),),
    ),
    Function(
        "page",
        """
def page(items, number, size):
    if size < 1:
        raise ValueError
    pages = (len(items) + size - 1) // size
    if number < 1 or number > max(pages, 1):
        raise IndexError
    start = (number - 1) * size
    return items[start:start + size]
""",
        (([1, 2, 3, 4], 1, 2), ([1, 2, 3, 4], 2, 2)),
        lambda chance: (_numbers(chance), chance.randint(-1, 5), chance.randint(-1, 4)),
    ),
    Function(
        "clamped_sum",
        """
def clamped_sum(numbers, low, high):
    if low > high:
        low, high = high, low
    total = 0
    for number in numbers:
        total += min(max(number, low), high)
    return total
""",
        (([1, 5], 0, 3), ([2], 0, 9)),
        lambda chance: (_numbers(chance), chance.randint(-9, 9), chance.randint(-9, 9)),
    ),
    Function(
        "best_gain",
        """
def best_gain(prices):
    best, lowest = 0, None
    for price in prices:
        if lowest is None or price < lowest:
            lowest = price
        elif price - lowest > best:
            best = price - lowest
    return best
""",
        (([1, 4],), ([4, 1],)),
        lambda chance: (_numbers(chance, 8, 0, 20),),
    ),
    Function(
        "top",
        """
def top(words, count):
    seen = {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    order = sorted(seen, key=lambda word: (-seen[word], word))
    return order[:max(count, 0)]
""",
        ((["a", "b", "a"], 1), (["a"], 2)),
        lambda chance: ([chance.choice("abcd") for _ in range(chance.randint(0, 8))], chance.randint(-1, 4)),
    ),
    Function(
        "overlap",
        """
def overlap(first, second):
    start = max(first[0], second[0])
    end = min(first[1], second[1])
    if end < start:
        return None
    return (start, end)
""",
        (((1, 5), (3, 9)), ((1, 2), (5, 6))),
        lambda chance: tuple((start := chance.randint(0, 8), start + chance.randint(0, 5)) for _ in range(2)),
    ),
    Function(
        "rotated",
        """
def rotated(items, steps):
    if not items:
        return []
    steps = steps % len(items)
    return items[-steps:] + items[:-steps] if steps else list(items)
""",
        (([1, 2, 3], 1), ([1, 2], 0)),
        lambda chance: (_numbers(chance, 6), chance.randint(-8, 8)),
    ),
    Function(
        "digits",
        """
def digits(number, base):
    if base < 2 or base > 16:
        raise ValueError
    if number == 0:
        return '0'
    sign, number, text = ('-' if number < 0 else ''), abs(number), ''
    while number > 0:
        text = '0123456789abcdef'[number % base] + text
        number = number // base
    return sign + text
""",
        ((5, 2), (10, 10)),
        lambda chance: (chance.choice([0, chance.randint(-40, 300)]), chance.choice([1, 2, 3, 10, 16, 17])),
    ),
    Function(
        "chunks",
        """
def chunks(items, size):
    if size <= 0:
        raise ValueError
    found = []
    for start in range(0, len(items), size):
        part = items[start:start + size]
        if len(part) < size and found and len(part) == 1:
            found[-1] = found[-1] + part
        else:
            found.append(part)
    return found
""",
        (([1, 2, 3, 4], 2), ([1, 2], 5)),
        lambda chance: (_numbers(chance), chance.randint(-1, 4)),
    ),
    Function(
        "tax",
        """
def tax(income):
    total, lower = 0, 0
    for upper, percent in ((100, 0), (400, 10), (1000, 25)):
        if income > lower:
            total += (min(income, upper) - lower) * percent // 100
        lower = upper
    if income > lower:
        total += (income - lower) * 40 // 100
    return total
""",
        ((50,), (300,)),
        lambda chance: (chance.choice([100, 400, 1000, chance.randint(-50, 500), chance.randint(0, 2000)]),),
    ),
)
