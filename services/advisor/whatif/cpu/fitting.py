"""The what-if kinds `regulate_pool_sizes` and `regulate_overlap_reclaim` fit pools into the CPUs there are."""

from services.advisor.core.sizing.fitting import fit_pools, overlap_of
from services.advisor.whatif.quantities import Cpus
from shared.whatif.decisions import Answer, Question, decision


class FitQuestion(Question):
    """Pools and isolated pools, and the CPUs for all of them."""

    available_cpus: Cpus
    pools: dict[str, Cpus]
    isolated_pools: dict[str, Cpus] = {}
    expand: bool


class FitAnswer(Answer):
    """Sizes of all pools."""

    pools: dict[str, int]
    throttled: bool


@decision("regulate_pool_sizes", area="cpu_sizing", asks=FitQuestion, answers=FitAnswer)
def regulate_pool_sizes(question: FitQuestion) -> FitAnswer:
    """Fit the pools' requirements into the available CPUs."""
    fitted = fit_pools(question.pools, question.isolated_pools, question.available_cpus, expand=question.expand)
    return FitAnswer(pools=dict(fitted.pools), throttled=fitted.throttled)


class OverlapQuestion(Question):
    """Share pools, and what reclaimed pods must borrow from them."""

    share_pools: dict[str, Cpus]
    required_cpus: Cpus


class OverlapAnswer(Answer):
    """CPUs borrowed from each pool; pools that lend none are left out."""

    overlap: dict[str, int] | None = None
    error: str | None = None
    message: str | None = None


@decision("regulate_overlap_reclaim", area="cpu_sizing", asks=OverlapQuestion, answers=OverlapAnswer)
def regulate_overlap_reclaim(question: OverlapQuestion) -> OverlapAnswer:
    """Split the CPUs that reclaimed pods must borrow from share pools."""
    return OverlapAnswer(overlap=overlap_of(question.share_pools, question.required_cpus))
