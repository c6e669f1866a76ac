"""From *this looks wrong* to *harm stopped*: which runs it touched, a freeze of exactly those, and working them off."""
