"""Central: the one service of a cluster; it judges silent nodes, hands out configuration, keeps the streams."""
