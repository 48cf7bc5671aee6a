"""What a real boat needs around a controller: forces to thrusters, sensors to a state, and a guard between them."""
