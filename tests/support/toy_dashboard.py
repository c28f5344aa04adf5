"""Streamlit with trainers that import no framework and train at a pace set by the test.

GAN_FAULTS_PACE=0.2 python -m tests.support.toy_dashboard run app.py --server.port 8501
"""

from __future__ import annotations

import os
import sys

from streamlit.web import cli

from gan_runtime.records import processes
from gan_runtime.supervision import standby

os.environ[standby.SWITCH] = "off"  # a waiting trainer is no toy
processes.TRAINER = "tests.support.toy_trainer"  # set before any module that starts one is loaded

if __name__ == "__main__":
    sys.exit(cli.main())
