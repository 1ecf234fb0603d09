"""Write the pages of settings and of metrics anew (`make settings`)."""

import sys
from pathlib import Path

from sublet.settings_page.metrics import metrics_page
from sublet.settings_page.page import page

for name, text in zip(sys.argv[1:], (page(), metrics_page()), strict=True):
    Path(name).write_text(text)
    print(name)
