"""The node's taint may keep a reclaimed pod from starting.

In a cluster the scheduler checks taints, for every pod. On one host only reclaimed pods are checked: the taint is there
to keep more batch work away, while a user who starts a shared or dedicated pod here wants it here.

Facts: docs/facts/katalyst-eviction.md#conditions-and-taints.
"""

from collections.abc import Sequence

from shared.adapters.files.taints import TaintFile
from shared.adapters.local.runtime import Runtime
from shared.core.cgroups.layout import class_group
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused, Unavailable
from sublet.views.taints import line


def require_untainted(runtime: Runtime, records: Sequence[PodRecord]) -> None:
    """Called with pods that shall be started; those that run already are not touched by a taint.

    Where Sublet is not up nothing is refused here: that is what the runtime has to say, not a taint that was left.

    Raises:
        Refused: `tainted`, a taint keeps reclaimed pods away and one of these is one; `taints_unknown`, the taints
            cannot be read, so that nobody can say so.
    """
    batch = [record.pod.key for record in records if record.pod.qos == "reclaimed_cores"]
    if not batch or not (runtime.simulated or runtime.cgroups.exists(class_group("reclaimed_cores", runtime.top))):
        return
    try:
        standing = TaintFile(runtime.common.state_dir).standing()
    except Unavailable as error:
        raise Refused(
            f"pod {batch[0]}: not started, as nobody can say whether this node takes reclaimed pods: {error}",
            reason="taints_unknown",
        ) from error
    against = [line(taint) for taint in standing if taint.keeps_away]
    if against:
        raise Refused(
            f"pod {batch[0]}: this node takes no reclaimed pods now: {'; '.join(against)}; the taint goes when the "
            "pressure has been gone for a while (evictor.condition_transition_s): wait, and look with: sublet status",
            reason="tainted",
        )
