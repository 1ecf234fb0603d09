"""`sublet node`: the five node services in one process, one event loop and one connection; the DaemonSet's default."""

from services.advisor.main import PLAN as ADVISOR
from services.evictor.main import PLAN as EVICTOR
from services.metrics.main import PLAN as METRICS
from services.qrm.main import PLAN as QRM
from services.reporter.main import PLAN as REPORTER
from shared.adapters.process import main

PLANS = (METRICS, ADVISOR, QRM, EVICTOR, REPORTER)

if __name__ == "__main__":
    main(PLANS)
