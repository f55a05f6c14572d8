"""The command line of a test that resumes a run while other lanes are at work.

Usage: in_company.py KEY,... VERB...

The fact that constrains it: a run that is gone on with is compared by settings of the whole machine, and other lanes
set some and put them back, at any moment. A lock would keep both lanes waiting for minutes, so these keys, which
others set, are not compared. That a run is refused by a setting of vm is tested in the lane
that sets it.
"""

import re
import sys

from plimsoll.cli import main
from plimsoll.run import runner

keys = re.compile(rf"({'|'.join(sys.argv[1].split(','))})(\.|$)")
sys.argv = ["plimsoll", *sys.argv[2:]]
compared = runner.comparable
runner.comparable = lambda a, b: [one for one in compared(a, b) if not keys.match(one["key"])]
main()
