"""`python -m services.metrics`: metrics alone in its process."""

from services.metrics.main import PLAN
from shared.adapters.process import main

main([PLAN])
