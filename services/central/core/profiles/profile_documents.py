"""ClusterColocationProfile objects, as profiles (docs/facts/koordinator-profiles.md#what-a-profile-does).

An unreadable profile matches nothing, and its status says why: a mistake changes no pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.kcc.selectors import Operator, Selector, expression
from services.central.core.profiles.profile import SKIP_RESOURCES, Profile, ProfileChanges
from shared.core.api_kind import ApiKind
from shared.core.pods.koord_qos import KoordQos
from shared.core.pydantic_words import first_fault
from shared.core.text.document import mapping
from shared.errors import Refused

PROFILES = ApiKind("config.koordinator.sh", "v1alpha1", "ClusterColocationProfile", "clustercolocationprofiles")
MOST_KEYS = 256
"""Of one map; a profile with more is not read."""
MOST_CHARACTERS = 1024
MOST_EXPRESSIONS = 64
MOST_PATCH_VALUES, MOST_PATCH_DEPTH = 10_000, 32
"""A Pod is less deep; each pod that is created waits until the patch has been merged."""

_INT32 = 2**31
_OPERATORS: Mapping[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Texts = Annotated[dict[Text, Text], Field(max_length=MOST_KEYS)]


class _Part(BaseModel):
    """Of an object that the API server has pruned by its schema: what it did not know is not here."""

    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel, allow_inf_nan=False)


class SelectorExpression(_Part):
    """One expression of a label selector."""

    key: Text
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[Text], Field(max_length=MOST_KEYS)] | None = None


class ProfileSelector(_Part):
    """A label selector as Kubernetes writes it into objects; an empty one takes everything."""

    match_labels: Texts | None = None
    match_expressions: Annotated[list[SelectorExpression], Field(max_length=MOST_EXPRESSIONS)] | None = None

    @property
    def selector(self) -> Selector:
        """Return the selector as the rules use it.

        Raises:
            Refused: `selector`, no label can satisfy it as it is written.
        """
        exact = [expression(key, "in", [value]) for key, value in (self.match_labels or {}).items()]
        others = [
            expression(part.key, _OPERATORS[part.operator], part.values or ()) for part in self.match_expressions or ()
        ]
        return Selector((*exact, *others))


class ProfileSpec(_Part):
    """The spec of a ClusterColocationProfile, field by field."""

    namespace_selector: ProfileSelector | None = None
    selector: ProfileSelector | None = None
    probability: int | Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,9}%$")] | None = None
    qos_class: KoordQos | Literal[""] | None = None
    priority_class_name: Text | None = None
    koordinator_priority: Annotated[int, Field(ge=-_INT32, lt=_INT32)] | None = None
    labels: Texts | None = None
    annotations: (
        Annotated[dict[Text, Annotated[str, Field(max_length=1 << 18)]], Field(max_length=MOST_KEYS)] | None
    ) = None
    label_keys_mapping: Texts | None = None
    annotation_keys_mapping: Texts | None = None
    label_suffixes: Texts | None = None
    scheduler_name: Text | None = None
    patch: dict[str, Any] | None = None

    @property
    def percent(self) -> int | None:
        """The probability in percent; None: always."""
        given = self.probability
        return int(given.removesuffix("%")) if isinstance(given, str) else given

    @property
    def changes(self) -> ProfileChanges:
        """Return what it writes into pods."""
        return ProfileChanges(
            labels=self.labels or {},
            annotations=self.annotations or {},
            label_keys_mapping=self.label_keys_mapping or {},
            annotation_keys_mapping=self.annotation_keys_mapping or {},
            label_suffixes=self.label_suffixes or {},
            scheduler_name=self.scheduler_name or "",
            koord_qos=self.qos_class or None,
            priority_class_name=self.priority_class_name or "",
            sub_priority=self.koordinator_priority,
            patch=self.patch or {},
        )


@dataclass(frozen=True, slots=True)
class ProfileSeen:
    """An object, and the profile that it is; None where it cannot be read, and why."""

    name: str
    generation: int
    profile: Profile | None
    problem: str = ""
    conditions: tuple[Mapping[str, Any], ...] = ()
    """Those in its status now."""


def profile_of(document: Mapping[str, Any]) -> ProfileSeen:
    """Read an object; nothing in its spec raises.

    Raises:
        Refused: it has no name, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name, generation = meta.get("name"), meta.get("generation")
    if not isinstance(name, str) or not name:
        raise Refused("metadata.name: want the name of a profile", reason="malformed")
    status = document.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    there = tuple(one for one in conditions if isinstance(one, Mapping)) if isinstance(conditions, list) else ()
    seen = generation if isinstance(generation, int) else 0
    try:
        return ProfileSeen(name, seen, read_profile(name, document), conditions=there)
    except Refused as refusal:
        return ProfileSeen(name, seen, None, str(refusal), there)


def read_profile(name: str, document: Mapping[str, Any]) -> Profile:
    """Return the profile that an object describes.

    Raises:
        Refused: `profile` or `selector`, with the field, its value and what is expected.
    """
    annotations = mapping(mapping(document.get("metadata"), "metadata").get("annotations"), "annotations")
    try:
        spec = ProfileSpec.model_validate(document.get("spec") or {})
    except ValidationError as error:
        raise Refused(f"spec.{first_fault(error, whole='spec')}", reason="profile") from error
    _check_patch(spec.patch)
    selectors = [
        None if one is None else _selector(one, field)
        for field, one in (("namespaceSelector", spec.namespace_selector), ("selector", spec.selector))
    ]
    return Profile(
        name=name,
        changes=spec.changes,
        namespace_selector=selectors[0],
        selector=selectors[1],
        probability_percent=spec.percent,
        skips_resources=SKIP_RESOURCES in annotations,
    )


def _selector(given: ProfileSelector, field: str) -> Selector:
    try:
        return given.selector
    except Refused as refusal:
        raise Refused(f"spec.{field}: {refusal}", reason="selector") from refusal


def _check_patch(patch: object) -> None:
    """Refuse a patch that would take long to merge. Iterative, because a deep document must not crash the reader."""
    level, values = [patch], 0
    for _ in range(MOST_PATCH_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        values += len(level)
        if not level or values > MOST_PATCH_VALUES:
            break
    if level:
        raise Refused(
            f"spec.patch: more than {MOST_PATCH_VALUES} values, or deeper than {MOST_PATCH_DEPTH}; say less",
            reason="profile",
        )


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
