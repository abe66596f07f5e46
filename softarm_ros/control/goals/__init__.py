"""Live goals: requests to a running arm, and the smooth motions that fulfil them."""
