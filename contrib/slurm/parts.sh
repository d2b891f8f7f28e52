#!/bin/bash
# A campaign in frozen parts as a Slurm array: a task for each part, wherever there is room.
#
#   export WORK=/shared/evening PARTS=64 RATE=5000
#   first=$(CANARY='--canary 1000' sbatch --parsable --array=1 parts.sh)
#   CANARY=--assume-canary sbatch --array=2-64%10 --dependency=afterok:$first --kill-on-invalid-dep=yes parts.sh
#
# With --kill-on-invalid-dep the others leave the queue if part 1 fails. KillWait in slurm.conf should be above
# --request-timeout (30 s): that long a run that is to end may await the responses in flight.
#
# WORK     where broadside-freeze put the parts (contrib/spark), on a file system of all nodes
# PARTS    how many parts there are
# RATE     requests per second of a task: the campaign's, divided by the tasks at once (%10)
# CANARY   part 1 goes first, with a canary; the others are told that it passed
#
# Exit codes of a part: 0 and 6 (finished, but rows are failed or unknown: a person decides about --retry) are
# the end of its task. 2 (the request is wrong) and 4 (the campaign as a whole is) cancel the array. All others
# are tried again: 7 is another attempt that has the ledger, 3 a word to stop, 1 and 5 network and disk.
#
# A node that cannot read WORK, or that has no broadside, is not the campaign's fault: the task goes back to the
# queue, for another node, and the log says so. It ends with 5 once it has been on ATTEMPTS nodes (20).
#SBATCH --job-name=broadside
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
part=$SLURM_ARRAY_TASK_ID
script=$WORK/frozen/part.sh

# Back to the queue, without this node. Slurm ends this script after that: until then it names the node.
elsewhere() {
    echo "parts.sh: part $part: ${SLURMD_NODENAME:-this node}: $1: the task goes back to the queue" >&2
    [ "${SLURM_RESTART_COUNT:-0}" -lt "${ATTEMPTS:-20}" ] || exit 5
    task=${SLURM_ARRAY_JOB_ID}_$part
    trap '' TERM
    nodes=$(scontrol show job "$task" | sed -n 's/.*ExcNodeList=\([^ ]*\).*/\1/p' | grep -v null)
    scontrol requeuehold "$task" || exit 5
    for ((second = 0; second < 20; second++)); do
        scontrol update "JobId=$task" "ExcNodeList=${nodes:+$nodes,}${SLURMD_NODENAME:-}" 2>/dev/null && break
        sleep 1
    done
    scontrol release "$task"
    exit 5
}

# What a shell makes of a script that is not there may be exit 2, as if the campaign were wrong.
look() {
    cat -- "$script" >/dev/null || elsewhere "$script can't be read there"
}

code=1
for ((attempt = 1; attempt <= ${ATTEMPTS:-20}; attempt++)); do
    look
    # Where the task is to end (requeue, scancel, a drained node) Slurm sends SIGTERM to each of its processes:
    # this script ends, and the run awaits what is in flight. The freeze wrote part.sh: it checks the list, and
    # refuses to begin a part again whose ledger was lost (exit 2).
    # shellcheck disable=SC2086
    sh "$script" "$part" "$PARTS" --rate "$RATE" $CANARY --log json --progress none
    code=$?
    case $code in
        0 | 6) exit 0 ;;
        2 | 4)
            look
            scancel "$SLURM_ARRAY_JOB_ID"
            exit "$code"
            ;;
        126 | 127) elsewhere "it can't start ${BROADSIDE:-broadside}" ;;
    esac
    sleep "${PAUSE:-10}"
done
exit "$code"
