"""The owner of a home: what may be asked of runs, who starts trainers and who buries them."""
