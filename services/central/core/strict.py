"""The base of models for documents that others write: config objects, taints and their parts."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Frozen, unknown fields refused, only finite numbers, no conversion to numbers.

    These are models, not dataclasses, because their values come from the API server: a wrong one is refused with its
    field and value, which the object's status then reports.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
