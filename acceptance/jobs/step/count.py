"""A step on Apache Spark: counts words, and leaves a CSV file for the training job that follows."""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

parser = argparse.ArgumentParser()
parser.add_argument("--lines", required=True)
parser.add_argument("--counts", required=True)
told = parser.parse_args()

spark = SparkSession.builder.appName("count").config("spark.sql.shuffle.partitions", 2).getOrCreate()
# Without "file://" SageMaker's image takes a path for one of HDFS.
lines = spark.read.text(Path(told.lines).resolve().as_uri())
words = lines.select(sql.explode(sql.split("value", " ")).alias("word")).groupBy("word").count().orderBy("word")
words.coalesce(1).write.mode("overwrite").csv(Path(told.counts).resolve().as_uri())
spark.stop()
