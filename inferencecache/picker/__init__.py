"""What a picker decides with: bodies, requests, choices. Pure: time and chance are handed in."""
