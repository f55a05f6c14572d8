"""What is in inside/ is for a guest: outside of it nothing there is collected."""

import os

collect_ignore = [] if os.environ.get("PLIMSOLL_INSIDE") else ["inside"]
