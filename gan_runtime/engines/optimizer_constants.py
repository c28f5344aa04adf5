"""What no option of a run sets, the same for every engine."""

from __future__ import annotations

RMSPROP_RHO = 0.9  # as in Keras and in CERN's 3DGAN
LOSS_SCALE_GROWTH_STEPS = 2000  # Micikevicius et al. 2018: doubled after so many steps without overflow
