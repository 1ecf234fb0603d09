"""`python -m services.advisor` runs the advisor alone in its process."""

from services.advisor.main import PLAN
from shared.adapters.process import main

main([PLAN])
