"""Every knob, default, unit and bound of the product, each written down once."""
