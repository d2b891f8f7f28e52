"""The file for `spark-submit`: the command itself is `broadside_fleet.spark_command`."""

import sys

from broadside_fleet.spark_command import main

if __name__ == "__main__":
    sys.exit(main())
