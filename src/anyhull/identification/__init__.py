"""System identification: a boat's dynamics, with their uncertainty, from a recorded voyage."""
