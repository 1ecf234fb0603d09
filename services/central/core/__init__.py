"""Pure decisions of central: which nodes are lost and what may be done about it, and which node gets which config."""
