"""Write the page of settings anew (`make settings`)."""

import sys
from pathlib import Path

from sublet.settings_page.page import page

path = Path(sys.argv[1])
path.write_text(page())
print(path)
