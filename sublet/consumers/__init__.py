"""Subscribing teams: their durable consumers, their logins, and their dead letters."""
