#!/usr/bin/env bash
# A standalone Spark cluster on this machine, from the pip package: a master and two workers, which run
# one job and stop.
#
#     examples/standalone.sh job.py [arguments]
#
# PYSPARK_PYTHON is the Python of all of them; it has pyspark, pandas, protobuf, pyarrow and numpy. The
# job finds windowlib in the archive that goes along with --py-files.
set -euo pipefail
python=${PYSPARK_PYTHON:-python3}
windowlib=${WINDOWLIB_ZIP:?"the archive: python -m windowlib.spark.deployment windowlib.zip"}
work=$(mktemp -d)
SPARK_HOME=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
port=$("$python" -c 'import socket; s = socket.create_server(("", 0)); print(s.getsockname()[1])')
master=spark://127.0.0.1:$port
export SPARK_HOME PYSPARK_PYTHON=$python SPARK_LOCAL_IP=127.0.0.1
export SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-512m}

pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT

deploy() {  # a part of the cluster, with what it says in a file
    "$SPARK_HOME/bin/spark-class" "org.apache.spark.deploy.$1" "${@:3}" > "$work/$2.log" 2>&1 &
    pids+=($!)
}

deploy master.Master master --host 127.0.0.1 --port "$port" --webui-port 0
for worker in 1 2; do
    deploy worker.Worker "worker-$worker" "$master" --host 127.0.0.1 --webui-port 0 \
        --cores 1 --memory 1g --work-dir "$work/worker-$worker"
done
for _ in $(seq 600); do  # a minute on a quiet machine is plenty
    [ "$(cat "$work"/worker-*.log | grep -c 'Successfully registered with master')" = 2 ] && break
    sleep 0.5
done
# A stream starts a Python worker on the driver, too, which sees no --py-files.
PYTHONPATH=$windowlib "$SPARK_HOME/bin/spark-submit" --master "$master" --py-files "$windowlib" \
    --conf spark.executor.memory=512m --conf spark.executor.cores=1 --conf spark.ui.enabled=false "$@"
