"""What flows add to the page of a rollout."""
