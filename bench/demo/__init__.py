"""Training the checkpoint in the box: from samples of `engine.demo` to the file that is shipped."""
