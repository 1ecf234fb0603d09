"""`python -m services.advisor` runs only the advisor in its process."""

from services.advisor.main import PLAN
from shared.adapters.process import main

main([PLAN])
