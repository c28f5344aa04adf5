"""An address of version 0.2.0, which redirects to the tab Evaluation of a run."""

from dashboard.evaluation import view
from dashboard.frame import session

view.redirect_to_run(session.runtime(), "rollout")
