"""Rules say how much memory is offered, where its limit lies, and whose page cache goes."""
