"""`python -m services.qrm`."""

from services.qrm.main import PLAN
from shared.adapters.process import main

main([PLAN])
