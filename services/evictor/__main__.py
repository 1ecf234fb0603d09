"""`python -m services.evictor` runs only the evictor in its process."""

from services.evictor.main import PLAN
from shared.adapters.process import main

main([PLAN])
