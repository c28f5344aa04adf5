"""The page Histograms."""
