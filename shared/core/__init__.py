"""Pure code that more than one service needs: CPU sets, topology, QoS, knobs."""
