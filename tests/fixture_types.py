"""Types of fixtures that are functions."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Until = Callable[[Callable[[], object]], Awaitable[None]]
"""Waits for a condition."""
Virtual = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine in virtual time."""
