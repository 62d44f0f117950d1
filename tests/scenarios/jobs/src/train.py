raise SystemExit("every training job of these tests has an outcome in the faults file")
