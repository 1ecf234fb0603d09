"""What releases cost who installs them."""
