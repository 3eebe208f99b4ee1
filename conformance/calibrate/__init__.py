"""Calibration: measure a backend's exponential as its softmax uses it, and compare it with the declared model.

It informs, and changes no verdict: rounding models are declared, not fitted.
"""

from .calibration import Calibration, calibrate, interval
from .fit import Fit

__all__ = ["Calibration", "Fit", "calibrate", "interval"]
