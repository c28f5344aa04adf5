"""The training sets: images in, with their source and size. `loading` finds them, the other files read one kind each."""
