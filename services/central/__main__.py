"""`python -m services.central`: the central alone in its process."""

from services.central.main import PLAN
from shared.adapters.process import main

main([PLAN])
