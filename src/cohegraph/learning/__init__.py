"""What is learnt and how: objectives, the training loop, calibration. It knows nothing of texts or graphs."""
