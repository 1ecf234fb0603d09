"""Names how a detector judges its threshold."""

from typing import Literal

Met = Literal["NOT_MET", "SOFT_MET", "HARD_MET"]
