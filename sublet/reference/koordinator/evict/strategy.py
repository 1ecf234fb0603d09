"""The kind `koord_evict_config_valid`: the part of a threshold strategy that each feature needs."""

from typing import Literal

from services.evictor.core.detectors.cpu.satisfaction import SatisfactionRule
from services.evictor.core.detectors.marks import EvictionMarks
from services.evictor.whatif.fields import Int64
from shared.whatif.decisions import Answer, Question, decision

MemoryFeature = Literal["BEMemoryEvict", "MemoryAllocatableEvict", "MemoryEvict"]
MEMORY_FEATURES: tuple[MemoryFeature, ...] = ("BEMemoryEvict", "MemoryAllocatableEvict", "MemoryEvict")
"""In the order in which their tasks are worked off."""
HIGHEST_PRIORITY = 7999
"""Pods above the mid class are never evicted for their requests."""


class ThresholdStrategy(Question):
    """What a strategy says about eviction; null: not said."""

    memory_evict_threshold_percent: Int64 | None = None
    memory_evict_lower_percent: Int64 | None = None
    evict_enabled_priority_threshold: Int64 | None = None
    memory_allocatable_evict_threshold_percent: Int64 | None = None
    memory_allocatable_evict_lower_percent: Int64 | None = None
    allocatable_evict_priority_threshold: Int64 | None = None
    satisfaction_lower_percent: Int64 | None = None
    satisfaction_upper_percent: Int64 | None = None

    @property
    def usage_marks(self) -> EvictionMarks | None:
        """Marks on the node's use of memory; None without a threshold."""
        if self.memory_evict_threshold_percent is None:
            return None
        return EvictionMarks(self.memory_evict_threshold_percent, self.memory_evict_lower_percent)

    @property
    def allocatable_marks(self) -> EvictionMarks | None:
        """Marks on the requests; None unless both are said."""
        threshold, lower = self.memory_allocatable_evict_threshold_percent, self.memory_allocatable_evict_lower_percent
        return None if threshold is None or lower is None else EvictionMarks(threshold, lower)

    def valid_for(self, feature: str) -> bool:
        """Whether a feature can be followed by what the strategy says."""
        match feature:
            case "BEMemoryEvict":
                return _usable(self.usage_marks)
            case "MemoryEvict":
                return _usable(self.usage_marks) and self.evict_enabled_priority_threshold is not None
            case "MemoryAllocatableEvict":
                priority = self.allocatable_evict_priority_threshold
                return _usable(self.allocatable_marks) and priority is not None and priority <= HIGHEST_PRIORITY
            case "BECPUEvict":
                lower, upper = self.satisfaction_lower_percent, self.satisfaction_upper_percent
                return lower is not None and upper is not None and SatisfactionRule(lower, upper).usable
        return False


class SwitchedStrategy(ThresholdStrategy):
    """A strategy with the switch that turns every feature on or off."""

    enable: bool = True


class EvictConfigQuestion(Question):
    """A feature by its name, and the strategy of its node; null: none."""

    feature: str
    strategy: ThresholdStrategy | None = None


class EvictConfigAnswer(Answer):
    """Whether the feature would run."""

    valid: bool


@decision("koord_evict_config_valid", area="koord_cpu_evict", asks=EvictConfigQuestion, answers=EvictConfigAnswer)
def koord_evict_config_valid(question: EvictConfigQuestion) -> EvictConfigAnswer:
    """Is an eviction strategy usable for a feature of Koordinator?"""
    strategy = question.strategy
    return EvictConfigAnswer(valid=strategy is not None and strategy.valid_for(question.feature))


def _usable(marks: EvictionMarks | None) -> bool:
    return marks is not None and marks.usable
