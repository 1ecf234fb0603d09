"""Rules of the custom and external metrics API: what a sample is, what is kept, what a question gets."""
