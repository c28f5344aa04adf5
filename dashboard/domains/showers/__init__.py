"""What showers add to the page of their evaluation."""
