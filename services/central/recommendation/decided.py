"""The published decisions of recommendations, one per ResourceRecommend and one per resized pod."""

from collections.abc import Mapping, Sequence

from services.central.core.recommendation.advice import ContainerAdvice
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.objects.status import APPLIED, ConditionDue, quantities
from services.central.core.recommendation.resizing import Resize
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "recommendation"


def decided_recommendation(
    seen: RecommendSeen, verdict: Sequence[ConditionDue], advice: Mapping[str, ContainerAdvice]
) -> Decided:
    """Return whether requests are recommended, and from which figures; otherwise the first obstacle."""
    missing = next((one for one in verdict if not one.holds and one.type != APPLIED), None)
    about = DecidedObject(kind="resourcerecommend", namespace=seen.namespace, name=seen.name, uid=seen.uid)
    if missing is not None:
        why = (Reason(rule=missing.reason),)
        return Decided(area=AREA, about=about, verdict="not_recommended", message=missing.said, why=why)
    reasons = tuple(
        Reason(
            rule="memory after a kill" if one.from_oom else "90th percentile and buffer",
            numbers={
                "container": name,
                **{f"{resource}_target": amount for resource, amount in one.target.items()},
                **{f"{resource}_used": amount for resource, amount in one.uncapped.items()},
                "confidence_days": round(one.confidence_days, 3),
            },
        )
        for name, one in advice.items()
    )
    said = "; ".join(f"{name}: {_words(one.target)}" for name, one in advice.items())
    return Decided(area=AREA, about=about, verdict="recommended", message=said, why=reasons)


def decided_resize(seen: RecommendSeen, resize: Resize) -> Decided:
    """That a pod is asked to take other requests, and which it had."""
    pod = resize.pod
    reasons = tuple(
        Reason(
            rule="requests out of bounds",
            numbers={
                "container": name,
                **{f"{resource}_before": amount for resource, amount in pod.containers[name].requests.items()},
                **{f"{resource}_after": amount for resource, amount in amounts.items()},
            },
        )
        for name, amounts in resize.requests.items()
    )
    about = DecidedObject(kind="pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
    said = f"by ResourceRecommend {seen.path}: " + "; ".join(
        f"{name}: {_words(amounts)}" for name, amounts in resize.requests.items()
    )
    return Decided(area=AREA, about=about, verdict="resized", message=said, why=reasons)


def _words(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{resource} {amount}" for resource, amount in quantities(amounts).items())
