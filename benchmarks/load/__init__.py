"""The dashboard under load: thirty windows on one run, a thousand runs, ten million numbers."""
