"""Streamlit, whose pages start trainers without a framework, which train as slowly as a test says.

GAN_FAULTS_PACE=0.2 python -m tests.support.toy_dashboard run app.py --server.port 8501
"""

from __future__ import annotations

import sys

from streamlit.web import cli

from gan_runtime.records import processes

processes.TRAINER = "tests.support.toy_trainer"  # before anything loads that starts one

if __name__ == "__main__":
    sys.exit(cli.main())
