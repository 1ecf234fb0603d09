"""The what-if kind `isolation_decision` finds the noisy pods of a node that a question describes."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.sizing.isolation import ContainerTasks, Isolation, IsolationRules, isolate
from services.advisor.whatif.quantities import Cores, Ratio
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class IsolationConfig(Question):
    """The rules; `disabled` turns isolation off."""

    disabled: bool
    cpu_ratio: Ratio
    cpu_size: Ratio
    lock_in_threshold: Annotated[int, Field(ge=0, le=1_000_000)]
    lock_out_s: Annotated[float, Field(ge=0, le=1e9)]
    max_resource_ratio: Ratio
    max_pod_ratio: Ratio
    disabled_pools: list[str] = []

    def rules(self) -> IsolationRules:
        """The rules of the service."""
        given = self.model_dump(exclude={"disabled", "disabled_pools"})
        return IsolationRules(**given, disabled_pools=frozenset(self.disabled_pools))


class NoisyContainer(Question):
    """One container; without a pool, or of another class than shared_cores, it takes no part."""

    pod: str
    container: str
    pool: str | None = None
    qos: QosClass
    request_cores: Cores
    limit_cores: Cores
    nr_runnable: Annotated[float, Field(ge=0, le=1e9)] | None = None


class IsolationQuestion(Question):
    """Containers of a node, and the pods isolated before."""

    config: IsolationConfig
    containers: list[NoisyContainer]
    isolated_pods: list[str]


class IsolationAnswer(Answer):
    """The isolated pods, ascending."""

    isolated_pods: list[str]


@decision("isolation_decision", area="cpu_sizing", asks=IsolationQuestion, answers=IsolationAnswer)
def isolation_decision(question: IsolationQuestion) -> IsolationAnswer:
    """Which noisy shared pods get CPUs of their own."""
    if question.config.disabled:
        return IsolationAnswer(isolated_pods=[])
    runners = [
        ContainerTasks(one.pod, one.container, one.pool, max(one.limit_cores, one.request_cores), one.nr_runnable)
        for one in question.containers
        if one.pool is not None and one.qos == "shared_cores"
    ]
    after = isolate(question.config.rules(), runners, Isolation(frozenset(question.isolated_pods)), 0.0)
    return IsolationAnswer(isolated_pods=sorted(after.pods))
