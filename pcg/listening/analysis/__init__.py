"""From votes to estimates: means, shares, rankings, and signs of careless listeners."""
