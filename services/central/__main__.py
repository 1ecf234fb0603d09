"""`python -m services.central` runs only central in its process."""

from services.central.main import PLAN
from shared.adapters.process import main

main([PLAN])
