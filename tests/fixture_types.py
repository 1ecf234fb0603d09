"""Types of fixtures that are functions."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from shared.contracts.allocation import Allocation
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample

Until = Callable[[Callable[[], object]], Awaitable[None]]
"""Waits for a condition."""
Virtual = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine in virtual time."""
NewAllocation = Callable[..., Allocation]
"""Makes an allocation; keywords replace its fields."""
NewSample = Callable[..., NodeSample]
"""Makes a sample; keywords replace its fields."""
NewPod = Callable[..., Pod]
"""Makes a pod by name; keywords set its fields."""
