"""The what-if kinds on colocation profiles: a pod after them, and the annotation that carries its resources."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from services.central.core.profiles.colocated_resources import ANNOTATION, extended_resources
from services.central.core.profiles.profile import (
    SKIP_RESOURCES,
    PriorityClassValue,
    Profile,
    ProfileChanges,
    exact_labels,
)
from services.central.core.profiles.profiled_pod import ProfilesInForce, profiled
from services.central.whatif.pod_amounts import ContainerAsked, PodAmounts
from shared.core.pods.koord_qos import KoordQos
from shared.whatif.decisions import Answer, Question, decision

AREA = "koord_colocation_profile"


class AskedPriorityClass(Question):
    """A PriorityClass of the cluster."""

    value: int
    preemption_policy: str | None = None


class AskedProfile(Question):
    """A profile; a selector that is null takes everything, a probability that is null everybody."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"patch"})

    name: str
    annotations_of_profile: dict[str, str] = {}
    namespace_selector: dict[str, str] | None = None
    selector: dict[str, str] | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    label_keys_mapping: dict[str, str] = {}
    annotation_keys_mapping: dict[str, str] = {}
    label_suffixes: dict[str, str] = {}
    scheduler_name: str | None = None
    koord_qos: KoordQos | None = None
    priority_class_name: str | None = None
    sub_priority: int | None = None
    probability_percent: int | None = None
    patch: dict[str, Any] | None = None

    @property
    def profile(self) -> Profile:
        """As the rule has it."""
        changes = ProfileChanges(
            labels=self.labels,
            annotations=self.annotations,
            label_keys_mapping=self.label_keys_mapping,
            annotation_keys_mapping=self.annotation_keys_mapping,
            label_suffixes=self.label_suffixes,
            scheduler_name=self.scheduler_name or "",
            koord_qos=self.koord_qos,
            priority_class_name=self.priority_class_name or "",
            sub_priority=self.sub_priority,
            patch=self.patch or {},
        )
        return Profile(
            name=self.name,
            changes=changes,
            namespace_selector=None if self.namespace_selector is None else exact_labels(self.namespace_selector),
            selector=None if self.selector is None else exact_labels(self.selector),
            probability_percent=self.probability_percent,
            skips_resources=SKIP_RESOURCES in self.annotations_of_profile,
        )


class ProfileQuestion(Question):
    """A pod that is created, the labels of its namespace, and the profiles of the cluster."""

    keeps_null: ClassVar[frozenset[str]] = AskedProfile.keeps_null

    namespace_labels: dict[str, str] = {}
    priority_classes: dict[str, AskedPriorityClass] = {}
    profiles: list[AskedProfile]
    draw: Annotated[int, Field(ge=0, le=99)] | None = None
    skip_by_pod_annotation: bool = False
    pod: PodAmounts

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        chances = [profile.probability_percent for profile in self.profiles]
        if self.draw is None and any(percent is not None and 0 < percent < 100 for percent in chances):
            raise ValueError("draw: a number from 0 to 99 is needed where a profile has a probability")
        return self


class ProfileAnswer(Answer):
    """The pod after them."""

    pod: PodAmounts
    explain: Any = None


@decision("profile_mutate", area=AREA, asks=ProfileQuestion, answers=ProfileAnswer)
def profile_mutate(question: ProfileQuestion) -> ProfileAnswer:
    """A pod after the colocation profiles that match it."""
    rules = ProfilesInForce(
        profiles=[asked.profile for asked in question.profiles],
        priority_classes={
            name: PriorityClassValue(**asked.model_dump()) for name, asked in question.priority_classes.items()
        },
        skip_by_pod_annotation=question.skip_by_pod_annotation,
    )
    found = profiled(question.pod.document, question.namespace_labels, rules, lambda _: question.draw or 0)
    explain = {"applied": found.applied, "failed": found.failed}
    return ProfileAnswer(pod=PodAmounts.of(found.pod), explain=explain)


class AnnotationQuestion(Question):
    """The containers of a pod."""

    containers: list[ContainerAsked]


class ContainerAmounts(Answer):
    """A container's requests for colocated resources."""

    requests: dict[str, int]
    limits: dict[str, int]


class AnnotationValue(Answer):
    """By the container's name."""

    containers: dict[str, ContainerAmounts]


class AnnotationAnswer(Answer):
    """The annotation; its value is written as JSON."""

    annotation_key: str
    value: AnnotationValue


@decision("extended_resource_annotation", area=AREA, asks=AnnotationQuestion, answers=AnnotationAnswer)
def extended_resource_annotation(question: AnnotationQuestion) -> AnnotationAnswer:
    """The annotation that carries colocated resources to the node."""
    found = extended_resources((one.name, one.requests, one.limits) for one in question.containers)
    return AnnotationAnswer(annotation_key=ANNOTATION, value=AnnotationValue.model_validate({"containers": found}))
