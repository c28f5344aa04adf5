"""Names on disk that version 0.2.0 gave: journals of single kinds of evaluations, and the folder of the films of rollouts."""

JOURNALS = ("surface", "physics", "flow")
FILMS_FOLDER = "flow"
