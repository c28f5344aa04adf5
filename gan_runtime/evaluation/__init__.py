"""The descent path of a run on its loss surface, as the paper's Fig. 11: weights kept, a plane through them, losses on it."""
