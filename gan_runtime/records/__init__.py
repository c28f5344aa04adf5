"""What is written of a run: records, the files that hold them, the folder they stand in."""
