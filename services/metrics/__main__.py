"""`python -m services.metrics` runs only metrics in its process."""

from services.metrics.main import PLAN
from shared.adapters.process import main

main([PLAN])
