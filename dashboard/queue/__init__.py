"""What waits, in its order, and what occupies the devices of this host; part of Home and Launch."""
