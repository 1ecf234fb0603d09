"""`python -m services.reporter` runs only the reporter in its process."""

from services.reporter.main import PLAN
from shared.adapters.process import main

main([PLAN])
