"""What the page of every run has, whatever it varied and whatever watched it."""
