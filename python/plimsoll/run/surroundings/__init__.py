"""The machine as one trial wants it: knob by knob, under a journal, and put back after it."""
