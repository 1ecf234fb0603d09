"""Pure decisions of the evictor: whom, when, how many. No I/O, no clock, no bus."""
