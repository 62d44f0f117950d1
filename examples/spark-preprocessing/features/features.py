"""Makes a row of features of each visit out of the events of all visitors, and splits the rows for training and test.

Runs as a processing step in SageMaker's Spark image. The paths are arguments, so that the script runs anywhere:

    spark-submit features.py --events data/events --visits data/visits.csv --train out/train --test out/test
"""

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

FEATURES = ["events", "products", "share_of_products", "seconds", "longest", "in_cart", "on_phone"]


def features(events: DataFrame) -> DataFrame:
    """One row for each visit: how much was looked at, for how long, and what was put into the cart."""
    product, cart = sql.col("page") == "product", sql.col("page") == "cart"
    return events.groupBy("visit").agg(
        sql.count("*").alias("events"),
        sql.sum(product.cast("int")).alias("products"),
        sql.round(sql.avg(product.cast("int")), 4).alias("share_of_products"),
        sql.round(sql.sum("seconds"), 1).alias("seconds"),
        sql.max("seconds").alias("longest"),
        sql.max(cart.cast("int")).alias("in_cart"),
        sql.max((sql.col("device") == "phone").cast("int")).alias("on_phone"),
    )


def split(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Train and test, a quarter. A visit stays on its side, whatever else is in the data."""
    bucket = sql.pmod(sql.xxhash64("visit"), sql.lit(4))
    return rows.where(bucket != 0), rows.where(bucket == 0)


def local(path: str) -> str:
    """The address of a file or folder: without "file://" SageMaker's image takes a path for one of HDFS."""
    return Path(path).resolve().as_uri()


def write(rows: DataFrame, folder: str) -> None:
    """One CSV file: what comes out is small, and its order is always the same."""
    ordered = rows.select("visit", "bought", *FEATURES).orderBy("visit")
    ordered.coalesce(1).write.mode("overwrite").option("header", True).csv(local(folder))


def main() -> None:
    """Read, join, split, write."""
    parser = argparse.ArgumentParser()
    for name in ("events", "visits", "train", "test"):
        parser.add_argument(f"--{name}", required=True)
    paths = parser.parse_args()

    spark = SparkSession.builder.appName("features").config("spark.sql.shuffle.partitions", 4).getOrCreate()
    events = spark.read.schema("visit int, page string, seconds double, device string").json(local(paths.events))
    visits = spark.read.schema("visit int, bought int").csv(local(paths.visits), header=True)
    rows = features(events).join(visits, "visit").cache()
    train, test = split(rows)
    write(train, paths.train)
    write(test, paths.test)
    print(f"rows={rows.count()} train={train.count()} test={test.count()} spark={spark.version}")
    spark.stop()


if __name__ == "__main__":
    main()
