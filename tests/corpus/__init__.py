"""Error texts with what ended the job, and how well they are told apart."""
