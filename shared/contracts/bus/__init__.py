"""Subjects say where messages travel, headers how; one door reads what the streams hold."""
