"""Keeps secrets out of everything that the agent writes. A value in the environment or on the command line is secret if
its name says so. A text is secret if its form, or a name beside it, shows that. The collector has the same rules
(collect/mask), and puts its patterns beside this module. The agent and the collector are tested on the same cases."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

MASK = "***"
# Shorter values, in bytes, are not masked: they occur everywhere, and masking "true" or "1" protects nothing and makes
# text unreadable.
_SHORTEST = 6
_OPEN, _WEAK, _STRONG = range(3)  # what a name means: nothing, secret if the value looks random, secret
_BORDERS = " \t\r\n'\"`;<>=:(),\\"  # characters beside the secret that a pattern may match too

_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_LOWER_UPPER = re.compile(r"([a-z0-9])([A-Z])")
_ACRONYM = re.compile(r"([A-Z]+)([A-Z][a-z])")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?")
_PATH = re.compile(
    r"^(/|~/|\./|\.\./)|\.(pem|key|json|ya?ml|txt|crt|cer|pub|toml|env|pt|csv|npz|pkl|py|sh|ini|cfg|conf)$"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_NUMBERED = re.compile(r"[A-Za-z]+[0-9]{1,4}|[0-9]{1,4}[A-Za-z]+|[0-9]{8}T[0-9]{6}Z?")
_ASSIGNABLE = re.compile(r"[+~]*[A-Za-z_][A-Za-z0-9_.-]*")
_SHORT_FLAG = re.compile(r"-[A-Za-z]")
_LONG_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*(=.*)?", re.DOTALL)
_PRECISION = re.compile(r"(bf|fp|float|int|uint|tf)[0-9]+")


class _Pattern:
    """A kind of secret that can be recognised by itself."""

    def __init__(self, rule: dict[str, Any]) -> None:
        self.keywords: list[str] = rule["keywords"]
        self._text: str = rule["pattern"]
        self._digit: bool = rule.get("digit", False)

    @functools.cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(self._text, re.ASCII)

    def find(self, text: str) -> Iterable[tuple[int, int]]:
        for m in self._expression.finditer(text):
            begin, end = m.span()
            while begin < end and text[begin] in _BORDERS:
                begin += 1
            while begin < end and text[end - 1] in _BORDERS:
                end -= 1
            if self._expression.groups == 1 and m.start(1) > m.start():
                begin = max(begin, m.start(1))
            if begin < end and (not self._digit or re.search("[0-9]", text[begin:end])):
                yield begin, end


class _Rules:
    """The rules that the collector reads too, and the patterns that the collector wrote."""

    def __init__(self) -> None:
        folder = Path(__file__).parent
        self.words: dict[str, Any] = json.loads((folder / "masking_rules.json").read_text("utf-8"))
        patterns = folder / "masking_patterns.json"
        found = json.loads(patterns.read_text("utf-8")) if patterns.exists() else self.words["prefixes"]
        self.patterns = [_Pattern(rule) for rule in found]
        self.stems: list[str] = self.words["stems"]
        keywords = {k.lower() for p in self.patterns for k in p.keywords} | set(self.stems)
        self.worth = re.compile("|".join(map(re.escape, sorted(keywords))))

    @functools.cache  # noqa: B019 - the process has one object of this class
    def expression(self, name: str) -> re.Pattern[str]:
        return re.compile(self.words[name], re.ASCII)


@functools.cache
def _rules() -> _Rules:
    return _Rules()


class Naming(NamedTuple):
    """What a name says about the value beside it."""

    level: int = _OPEN
    word: str = ""
    before: str = ""

    def holds(self, value: str) -> bool:
        """Whether the value is secret."""
        words = _rules().words
        value = value.strip()
        if self.level == _OPEN or not value or value.startswith(MASK) or value.lower() in words["plain_values"]:
            return False
        if self.level == _WEAK:
            return _looks_random(value)
        if _NUMBER.fullmatch(value) and len(value) < _SHORTEST:
            return self.word in words["password_words"]
        if self.word in words["path_words"] and _PATH.search(value):
            return _looks_random(value)
        return self.word != "dsn" or not value.startswith("sqlite:")

    def in_text(self) -> Naming:
        """What the name means in running text, where words such as "token: the" and "key=layer.0" are common."""
        words = _rules().words
        known = self.word in words["text_strong"] or self.before in words["text_qualifiers"].get(self.word, ())
        return self if known or self.level < _STRONG else self._replace(level=_WEAK)


def _split(name: str) -> list[str]:
    name = _SEPARATORS.sub(" ", name)
    return _ACRONYM.sub(r"\1 \2", _LOWER_UPPER.sub(r"\1 \2", name)).lower().split()


def name_flag(name: str) -> Naming:
    """Judges by the last word of a flag, a key or a parameter: --token and --api-key are secret, --key-dim and
    --max-tokens are not."""
    return _name_words(_split(name), _rules().words["harmless_before"])


def name_variable(name: str) -> Naming:
    """Judges by any word, as in AWS_SECRET_ACCESS_KEY_ID, since variables of the environment are seldom parameters of
    training."""
    rules = _rules().words
    words = _split(name)
    if not words or name.lower() in rules["harmless_variables"] or words[-1] in rules["metadata"]:
        return Naming()
    harmless = {**rules["harmless_before"], **rules["harmless_variables_before"]}
    return max((_name_words(words[: i + 1], harmless) for i in range(len(words))), key=lambda n: n.level)


def _name_words(words: list[str], harmless: dict[str, list[str]]) -> Naming:
    if not words:
        return Naming()
    rules = _rules().words
    word, before = words[-1], words[-2] if len(words) > 1 else ""
    if word not in rules["secret_words"]:
        for suffix in rules["suffixes"]:
            rest = word.removesuffix(suffix)
            if rest != word and (suffix not in ("pass", "pwd") or rest in rules["pass_prefixes"]):
                word, before = suffix, rest
                break
        else:
            return Naming()
    return Naming(_WEAK if before in harmless.get(word, ()) else _STRONG, word, before)


def _looks_random(value: str) -> bool:
    """Whether a part of the value mixes letters and digits in a way in which no word, name or date does."""
    return any(
        len(p) >= 8 and not p.isalpha() and not p.isdigit() and not _NUMBERED.fullmatch(p)
        for p in _PIECE.findall(value)
    )


def _evident(value: str) -> bool:
    """Whether an unquoted word of a text looks like a password, rather than like a word or code."""
    return (
        len(value.encode(errors="surrogateescape")) >= 4
        and not re.search(r"[(\[{$]", value)
        and not _NUMBER.fullmatch(value)
        and not _IDENTIFIER.fullmatch(value)
        and (re.search(r"[0-9!@#%^&*+=~?]", value) is not None or value.count("-") >= 2)
    )


class _Reading:
    """A text that is being searched for secrets, by their form and by the names beside them. given: the text comes from
    a command line, a variable or a parameter, where names mean what they say."""

    def __init__(self, text: str, given: bool) -> None:
        self.text, self.given = text, given
        self.spans: list[tuple[int, int]] = []
        rules = _rules()
        lower = text.lower()
        if not rules.worth.search(lower):
            return
        for pattern in rules.patterns:
            if any(k in lower for k in pattern.keywords):
                self.spans += pattern.find(text)
        if any(stem in lower for stem in rules.stems):
            self._urls()
            if ":" in text or "=" in text:
                self._assignments()
            for m in rules.expression("flag").finditer(text):
                self._value(m[1], m.end())
            self.spans += [m.span(1) for m in rules.expression("bearer").finditer(text) if re.search("[0-9]", m[1])]
            self._private_keys()

    def merged(self) -> list[tuple[int, int]]:
        """The positions of the secrets, in order and without overlaps."""
        out: list[tuple[int, int]] = []
        for begin, end in sorted(self.spans):
            if out and begin <= out[-1][1]:
                out[-1] = out[-1][0], max(out[-1][1], end)
            else:
                out.append((begin, end))
        return out

    def values(self) -> list[str]:
        return [self.text[begin:end] for begin, end in self.merged()]

    def hidden(self) -> str:
        parts, at = [], 0
        for begin, end in self.merged():
            parts += [self.text[at:begin], MASK]
            at = end
        return "".join((*parts, self.text[at:]))

    def value_of(self, flag: str) -> None:
        """Masks an argument that is the value of the flag before it."""
        if not flag.startswith("-") or "=" in flag:
            return
        if name_flag(flag).holds(self.text) or (flag == "-p" and _password(self.text)):
            self.spans.append((0, len(self.text)))
        elif _user_flag(flag):
            self.credentials(0)

    def credentials(self, at: int) -> None:
        """Masks the password of user:password. A text like 1000:1000 is left, since it is a user's and a group's
        number."""
        user, colon, secret = self.text[at:].partition(":")
        if colon and user and secret and not secret.startswith("//") and secret.strip("0123456789"):
            self.spans.append((at + len(user) + 1, len(self.text)))

    def _urls(self) -> None:
        rules = _rules()
        for m in rules.expression("url").finditer(self.text):
            body, at = m[1], m.start(1)
            if n := _userinfo(body):
                user, both, password = body[:n].partition(":")
                if both and password and password != "x-oauth-basic":
                    if not password.startswith(MASK) and password[0] not in "${<":
                        self.spans.append((at + len(user) + 1, at + n))
                elif (both and len(user.encode(errors="surrogateescape")) >= _SHORTEST) or _looks_random(user):
                    self.spans.append((at, at + len(user)))
            for q in rules.expression("query").finditer(body):
                signed = _split(q[1])[-1:]
                name = name_flag(q[1])
                if signed and signed[0] in rules.words["query_words"]:
                    name = Naming(_STRONG, "signature")
                if name.holds(q[2]):
                    self.spans.append((at + q.start(2), at + q.end(2)))

    def _assignments(self) -> None:
        at, expression = 0, _rules().expression("assignment")
        while m := expression.search(self.text, at):
            at = max(m.end(), self._value(m[1], m.end()))

    def _value(self, name: str, at: int) -> int:
        """Masks the value of a name if it is secret. The value begins at position at. Returns the value's end."""
        naming = name_flag(name)
        if not self.given:
            naming = naming.in_text()
        if naming.level == _OPEN:
            return at
        at, end, quoted = self._end(at)
        if naming.word in ("cookie", "authorization") and (found := self._header(naming, at, end, quoted)):
            self.spans.append(found)
            return found[1]
        text = self.text[at:end]
        if not naming.holds(text):
            return at
        if not self.given and naming.level == _STRONG:
            short = len(text.encode(errors="surrogateescape")) < 4
            if quoted and (short or re.search("[ \t\n]", text) or text[0] in "<${%"):
                return at
            if not quoted and not _evident(text):
                return at
        self.spans.append((at, end))
        return end

    def _end(self, at: int) -> tuple[int, int, bool]:
        """Returns where a value at a position begins and ends, and whether it is quoted."""
        quote = next((q for q in ('\\"', "\\'", '"', "'", "`") if self.text.startswith(q, at)), "")
        if not quote:
            ends, end = _rules().words["unquoted_end"], at
            while end < len(self.text) and self.text[end] not in ends:
                end += 1
            return at, end, False
        at += len(quote)
        end = at
        while end < len(self.text):
            if self.text.startswith(quote, end):
                return at, end, True
            end += 2 if self.text[end] == "\\" and len(quote) == 1 else 1
        return at, len(self.text), True

    def _header(self, naming: Naming, at: int, end: int, quoted: bool) -> tuple[int, int] | None:
        """The secret part of an Authorization or a Cookie header."""
        if not quoted:
            stop = re.compile("[\r\n\"'`]").search(self.text, at)
            end = stop.start() if stop else len(self.text)
        value = self.text[at:end]
        if naming.word == "cookie":
            return (at, end) if "=" in value and not value.startswith(MASK) else None
        scheme = _rules().expression("scheme").match(value)
        rest = value[scheme.end() :].rstrip(" \t") if scheme else ""
        if not scheme or not rest or rest.startswith(MASK):
            return None
        if '="' not in rest and ", " not in rest:  # a single token, and no list of parameters
            rest = rest.partition(" ")[0]
        return at + scheme.end(), at + scheme.end() + len(rest)

    def _private_keys(self) -> None:
        rules = _rules()
        for m in rules.expression("begins_key").finditer(self.text):
            stop = rules.expression("ends_key").search(self.text, m.start())
            self.spans.append((m.start(), stop.end() if stop else len(self.text)))


def _userinfo(body: str) -> int:
    """The length of the part of a URL that stands before the host."""
    authority = re.split("[/?#]", body, maxsplit=1)[0]
    if "@" in authority:
        return authority.rindex("@")
    _, colon, port = authority.partition(":")
    return max(0, body.rfind("@")) if colon and port.strip("0123456789") else 0


def _flag_like(argument: str) -> bool:
    name, given, _ = argument.partition("=")
    long = _LONG_FLAG.fullmatch(argument) and not _looks_random(name) and (given or argument.startswith("--"))
    return bool(_SHORT_FLAG.fullmatch(argument) or long)


def _user_flag(name: str) -> bool:
    return name.startswith("-") and name.strip("-") in _rules().words["user_flags"]


def _password(value: str) -> bool:
    """Whether the value of the option -p is a password, and not a port, a path, a precision or a plugin."""
    odd = re.search("[/=]", value) or _PATH.search(value) or _PRECISION.fullmatch(value)
    return _evident(value) and not odd and bool(value.strip("0123456789.:-,"))


def _in_arguments(arguments: list[str]) -> list[str]:
    found: list[str] = []
    for i, argument in enumerate(arguments):
        code = re.search("[(\n]", argument) and not argument.startswith("{")
        reading = _Reading(argument, not code)
        name, given, value = argument.partition("=")
        # Hydra's overrides have the form NAME=value, where other programs have flags.
        settable = argument.startswith("-") or _ASSIGNABLE.fullmatch(name)
        if given and settable and name_flag(name).holds(value):
            reading.spans.append((len(name) + 1, len(argument)))
        if given and _user_flag(name):
            reading.credentials(len(name) + 1)
        if i and not _flag_like(argument):
            reading.value_of(arguments[i - 1])
        found += reading.values()
    return found


def gather(environment: dict[str, str], arguments: list[str]) -> list[str]:
    """The values to mask, longest first, since one value may be part of another."""
    words = _rules().words
    found = _in_arguments(arguments)
    for name, value in environment.items():
        if name_variable(name).holds(value):
            found.append(value)
        found += _Reading(value, True).values()
    plain = {*words["secret_words"], *words["plain_values"]}
    secrets = {v.strip() for v in found if v.strip().lower() not in plain}
    secrets |= {urllib.parse.unquote(v) for v in secrets}
    long = (v for v in secrets if len(v.encode("utf-8", "surrogateescape")) >= _SHORTEST)
    return sorted(long, key=len, reverse=True)


@functools.cache
def _secrets() -> list[str]:
    """The secrets of this process. The first call collects the secrets, so that starting costs nothing."""
    return gather(dict(os.environ), list(getattr(sys, "orig_argv", sys.argv)))


def _plain(text: str) -> str:
    """Returns the text with invalid characters escaped, for example those of a file's name."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def mask(text: str) -> str:
    """Returns the text with every secret replaced, and with invalid characters escaped, for example those of a file's
    name."""
    for secret in _secrets():
        if secret in text:
            text = text.replace(secret, MASK)
    return _plain(_Reading(text, False).hidden())


def masked(value: Any, name: str = "") -> Any:
    """Returns a value for JSON in which every string is masked. Types that JSON lacks become text. name is the name of
    the value, and by it the value and its contents may be secret."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        # Keys are not masked: they are the format's own words, and a secret may happen to equal one.
        return {_plain(str(k)): masked(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [masked(v, name) for v in value]
    text = mask(str(value))
    return MASK if name and name_flag(name).holds(text) else text
