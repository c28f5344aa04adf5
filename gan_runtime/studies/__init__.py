"""Studies: a question, the runs that answer it, and how sure the answer is."""
