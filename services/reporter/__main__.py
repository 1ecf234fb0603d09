"""`python -m services.reporter`: the reporter alone in its process."""

from services.reporter.main import PLAN
from shared.adapters.process import main

main([PLAN])
