"""What is known of models: the list that comes with swink or that the user fetched, and how it is made."""
