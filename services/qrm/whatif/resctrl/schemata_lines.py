"""The what-if kinds `rdt_schemata` and `schemata_check`: lines of resctrl made of percents, and checked."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from services.qrm.core.resctrl.hardware import BandwidthHardware, CacheHardware, Hardware, Resource, Vendor
from services.qrm.core.resctrl.schemata import (
    Values,
    checked_bandwidths,
    checked_masks,
    differs,
    read_schemata,
    schemata_line,
)
from services.qrm.core.resctrl.shares import CacheShare, wanted_schemata, ways_of
from services.qrm.whatif.resctrl import AREA
from shared.whatif.decisions import Answer, Question, decision

Hex = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{1,16}$"), AfterValidator(str.lower)]
Domain = Annotated[int, Field(ge=0, le=1 << 16)]
Number = Annotated[int, Field(ge=1)]
WHAT: dict[Resource, Literal["l3", "mba"]] = {"L3": "l3", "MB": "mba"}


class AskedGroup(Question):
    """A group, and its wanted share; null: unset."""

    name: str
    l3_start_percent: int | None = None
    l3_end_percent: int | None = None
    mba_percent: int | None = None


class SchemataQuestion(Question):
    """What a machine controls, and its groups."""

    cbm_mask: Hex
    min_cbm_bits: Number = 1
    domains: list[Domain]
    vendor: Vendor = "intel"
    groups: list[AskedGroup]


class SchemataProblem(Answer):
    """A part that cannot be given."""

    group: str
    what: Literal["l3", "mba"]


class SchemataAnswer(Answer):
    """The lines of each group."""

    lines: dict[str, list[str]]
    problems: list[SchemataProblem]


@decision("rdt_schemata", area=AREA, asks=SchemataQuestion, answers=SchemataAnswer)
def rdt_schemata(question: SchemataQuestion) -> SchemataAnswer:
    """Cache and bandwidth lines of resctrl groups."""
    mask, domains = int(question.cbm_mask, 16), frozenset(question.domains)
    ways_of(mask)
    cache, bandwidth = (
        CacheHardware(domains, mask, question.min_cbm_bits),
        BandwidthHardware(domains, question.vendor, 1),
    )
    found = {
        group.name: wanted_schemata(
            CacheShare(group.l3_start_percent, group.l3_end_percent, group.mba_percent), Hardware(cache, bandwidth)
        )
        for group in question.groups
    }
    return SchemataAnswer(
        lines={name: [schemata_line(resource, values) for resource, values in one.values.items() if values]
               for name, one in found.items()},
        problems=[SchemataProblem(group=name, what=WHAT[resource])
                  for name, one in found.items() for resource in one.impossible],
    )  # fmt: skip


class CurrentLines(Question):
    """The lines that a group has."""

    l3: str | None = None
    mb: str | None = None


class CheckQuestion(Question):
    """Lines for a group, and what the machine takes."""

    l3: str | None = None
    mb: str | None = None
    domain_count: Domain
    cbm_mask: Hex
    min_cbm_bits: Number = 1
    mb_min: Domain = 10
    mb_granularity: Number = 10
    current: CurrentLines = CurrentLines()


class CheckAnswer(Answer):
    """What was found; null if it was not asked for."""

    l3_ways: dict[int, int] | None
    mb: str | None
    l3_changed: bool | None
    mb_changed: bool | None


@decision("schemata_check", area=AREA, asks=CheckQuestion, answers=CheckAnswer)
def schemata_check(question: CheckQuestion) -> CheckAnswer:
    """Is a line of resctrl safe to write, and does it change anything?"""
    domains = frozenset(range(question.domain_count))
    masks = widths = None
    if question.l3 is not None:
        cache = CacheHardware(domains, int(question.cbm_mask, 16), question.min_cbm_bits)
        masks = checked_masks(question.l3, cache)
    if question.mb is not None:
        bandwidth = BandwidthHardware(domains, least=question.mb_min, step=question.mb_granularity)
        widths = checked_bandwidths(question.mb, bandwidth)
    current = question.current
    return CheckAnswer(
        l3_ways=None if masks is None else {domain: mask.bit_count() for domain, mask in masks.items()},
        mb=None if widths is None else schemata_line("MB", widths),
        l3_changed=None if masks is None else differs(masks, _now("L3", current.l3)),
        mb_changed=None if widths is None else differs(widths, _now("MB", current.mb)),
    )


def _now(resource: Resource, line: str | None) -> Values:
    return read_schemata(line or "").get(resource, {})
