"""What commands show of the configuration."""
