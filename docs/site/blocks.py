"""Every code block of the pages: run by a test, checked as far as it goes without running, or skipped with a reason.

    python docs/site/blocks.py       prints how many of each, and fails where a block is wrong

A line `sublet …` is read by the real parser: a command or an option that is gone is found. Python is compiled; YAML,
JSON and TOML are read.
"""

import json
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import yaml
from typer.core import TyperCommand, TyperGroup

from shared.core.scan import modules_in
from sublet import cli, commands

ROOT = Path(__file__).resolve().parents[2]
RUN_BY = {
    "docs/subscribing.md": "tests/consumers/test_subscribing_page.py",
    "docs/writing-a-field.md": "tests/unit/reporter/test_writing_a_field.py",
    "docs/writing-a-message.md": "tests/unit/contracts/test_writing_a_message.py",
    "docs/writing-a-policy.md": "tests/unit/advisor/test_writing_a_policy.py",
    "docs/writing-a-service.md": "tests/unit/shared/test_writing_a_service.py",
    "docs/writing-a-source.md": "tests/unit/metrics/test_writing_a_source.py",
    "docs/writing-an-eviction-plugin.md": "tests/unit/evictor/test_writing_an_eviction_plugin.py",
}
"""Pages with a test of their own that types what they print."""
SECTION_RUN_BY = {
    ("docs/install.md", "On a laptop, without root"): "tests/wheel/test_install_page.py",
    ("docs/install.md", "On a Linux host"): "tests/integration/test_install_page_host.py",
}
"""Sections with one, by page and heading."""
FIRST_SUCCESS = "tests/kubernetes/test_first_success.py"
"""Types the `sh` blocks of each section that promises a success in five minutes."""
IN_FIVE_MINUTES = re.compile(r"^## (?:First success in|In) five minutes\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
READERS: dict[str, Callable[[str], Any]] = {
    "python": lambda text: compile(text, "block", "exec", dont_inherit=True),
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "json": json.loads,
    "toml": tomllib.loads,
}
BETWEEN = {"|", "||", "&&", ";", "&", "(", ")"}
PROGRAM = re.compile(r"(?:.*/)?sublet")
OF_OTHERS = "commands of other programs (kubectl, helm, make, docker): run in the rigs, not here"
NOT_CODE = "output, a picture in letters, or a template with words to be replaced"


@dataclass(frozen=True)
class Block:
    """A code block and where it stands."""

    page: str
    language: str
    text: str
    first_success: bool = False
    """Whether it is of the section that promises one."""
    heading: str = ""
    """Of the section that it is in."""


@dataclass(frozen=True)
class Verdict:
    """What was done with a block: `run`, `checked` or `skipped`, by what or why; what is wrong with it, if anything."""

    done: str
    why: str
    wrong: str = ""


def blocks() -> Iterator[Block]:
    """The blocks of README, `docs` and the other pages of the site."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy/compose/README.md"]
    for page in pages + sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        section = IN_FIVE_MINUTES.search(text)
        for found in BLOCK.finditer(text):
            inside = section is not None and section.start() < found.start() < section.end()
            heading = (["", *HEADING.findall(text, 0, found.start())])[-1]
            yield Block(str(page.relative_to(ROOT)), found[1], found[2], inside, heading)


def judge(block: Block, group: TyperGroup) -> Verdict:
    """What is done with a block."""
    run_by = SECTION_RUN_BY.get((block.page, block.heading), RUN_BY.get(block.page))
    if block.first_success and block.language == "sh":
        run_by = FIRST_SUCCESS
    if run_by is not None:
        return Verdict("run", run_by, _wrong_commands(block.text, group))
    if reader := READERS.get(block.language):
        return Verdict("checked", f"read as {block.language}", _unreadable(reader, block.text))
    if list(sublet_words(block.text)):
        return Verdict("checked", "commands read by the parser", _wrong_commands(block.text, group))
    others = re.search(
        r"^\s*(?:sudo )?(?:kubectl|helm|make|docker|nats|curl|python3?|pip|sh|git)\b", block.text, re.MULTILINE
    )
    return Verdict("skipped", OF_OTHERS if others else NOT_CODE)


def _unreadable(reader: Callable[[str], Any], text: str) -> str:
    try:
        reader(text)
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def sublet_words(text: str) -> Iterator[list[str]]:
    """The words behind each `sublet` that is typed in a block, as a shell would pass them on."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
        lexer.whitespace_split, lexer.commenters = True, "#"
        try:
            words = list(lexer)
        except ValueError:  # a quote that ends on another line
            continue
        yield from _commands_of(words)


def _commands_of(words: Sequence[str]) -> Iterator[list[str]]:
    ends = [number for number, word in enumerate(words) if word in BETWEEN or set(word) <= set("|&;()<>")]
    start = 0
    for end in [*ends, len(words)]:
        part = list(words[start:end])
        start = end + 1
        while part and (part[0] in ("sudo", "kubectl", "-E", "$") or re.fullmatch(r"[A-Z_0-9]+=.*", part[0])):
            part.pop(0)
        if part and PROGRAM.fullmatch(part[0]):
            yield part[1:]


def _wrong_commands(text: str, group: TyperGroup) -> str:
    return "; ".join(why for words in sublet_words(text) if (why := wrong_words(words, group)))


def wrong_words(words: Sequence[str], group: TyperGroup) -> str:
    """Why the parser does not take these words; "" where it does."""
    known = [word for word in words if word != "…" and not word.startswith((">", "<", "2>"))]
    inner: TyperCommand | TyperGroup = group
    while isinstance(inner, TyperGroup):
        if not known or known[0].startswith("-"):
            return ""
        following = inner.commands.get(known[0])
        if following is None:
            return f"sublet {' '.join(words)}: no command {known[0]!r}"
        inner, known = following, known[1:]  # type: ignore[assignment]
    names = {name for one in inner.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    given = known[: known.index("--")] if "--" in known else known
    unknown = [word for word in given if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in names]
    takes_rest = bool(inner.context_settings.get("allow_interspersed_args") is False)
    short = [word for word in unknown if not word.startswith("--") and f"-{word[1]}" in names]
    wrong = [] if takes_rest and "--" not in known else [word for word in unknown if word not in short]
    return f"sublet {' '.join(words)}: no option {', '.join(wrong)}" if wrong else ""


def report() -> tuple[list[str], list[str]]:
    """Lines with how many blocks were done how, and lines with what is wrong."""
    group = typer.main.get_group(cli.build(modules_in(commands)))
    judged = [(block, judge(block, group)) for block in blocks()]
    counts = Counter((verdict.done, verdict.why) for _, verdict in judged)
    lines = [f"{number:4}  {done:8} {why}" for (done, why), number in sorted(counts.items())]
    wrong = [f"{block.page}: {verdict.wrong}" for block, verdict in judged if verdict.wrong]
    return [*lines, f"{len(judged):4}  blocks, {len(wrong)} of them wrong"], wrong


if __name__ == "__main__":
    told, faults = report()
    print("\n".join([*told, *faults]))
    sys.exit(bool(faults))
