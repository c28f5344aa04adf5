"""What the pages share: the process-wide runtime, widgets, charts, words and colors."""
