"""Stage: one or two runs for an audience: `?runs=a,b`, or the newest."""

from dashboard.frame import session
from dashboard.run import stage

stage.show(session.runtime())
