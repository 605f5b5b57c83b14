"""Recognises secrets in text: by an issuer's format, or by a telling name and a random-looking value."""

from __future__ import annotations

import math
import re
from collections import Counter

_FORMS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----", "a private key"),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "an AWS key"),
        (r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{50,}", "a GitHub token"),
        (r"\bglpat-[A-Za-z0-9_-]{20,}", "a GitLab token"),
        (r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{24,}", "an AI provider's key"),
        (r"\bsk_live_[A-Za-z0-9]{16,}|\brk_live_[A-Za-z0-9]{16,}", "a Stripe key"),
        (r"\bxox[abeprs]-[A-Za-z0-9-]{10,}", "a Slack token"),
        (r"\bAIza[0-9A-Za-z_-]{35}\b", "a Google key"),
        (r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[A-Za-z0-9_-]{40,}", "a package registry token"),
        (r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}", "a signed token"),
        (r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?!\$)[^\s/@{}<>*]{6,}@", "a password in a URL"),
    )
)
_NAMED = re.compile(
    r"(?i)(?:password|passwd|secret|token|api_?key|private_?key|access_?key|credential)\w*[\"']?\s*[:=]\s*"
    r"[\"']([^\"'\s]{12,})[\"']"
)
_STANDS_FOR_ONE = re.compile(
    r"(?i)example|sample|dummy|changeme|placeholder|xxxx|your[_-]|test|fake|\$\{|\{\{|<|\.\.\.|%\("
)
_DISORDER = 3.4  # bits per character: words have fewer, keys more


def secret_in(line: str, *, guess: bool = True) -> str | None:
    """What the line seems to contain; without `guess`, only an issuer's format counts."""
    for form, kind in _FORMS:
        if form.search(line):
            return kind
    if guess and (match := _NAMED.search(line)) and not _STANDS_FOR_ONE.search(match[1]):
        return "a secret" if _disorder(match[1]) > _DISORDER and re.search(r"\d", match[1]) else None
    return None


def _disorder(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
