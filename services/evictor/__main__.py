"""`python -m services.evictor`: the evictor alone in its process."""

from services.evictor.main import PLAN
from shared.adapters.process import main

main([PLAN])
