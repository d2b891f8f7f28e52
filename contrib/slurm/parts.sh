#!/bin/bash
# Sends a campaign in frozen parts as a Slurm array, with a task for each part.
#
#   export WORK=/shared/evening PARTS=64 RATE=5000
#   first=$(CANARY='--canary 1000' sbatch --parsable --array=1 parts.sh)
#   CANARY=--assume-canary sbatch --array=2-64%10 --dependency=afterok:$first --kill-on-invalid-dep=yes parts.sh
#
# With --kill-on-invalid-dep, the other parts leave the queue if part 1 fails. KillWait in slurm.conf should be above
# --request-timeout (30 s), because a run that has to end may wait that long for responses in flight.
#
# WORK     where broadside-freeze put the parts (contrib/spark), on a file system of all nodes
# PARTS    how many parts there are
# RATE     requests per second of a task: the campaign's rate divided by the number of tasks at a time (%10)
# CANARY   the options about the canary: part 1 goes first, with a canary; for the others, it has passed
#
# Exit codes of a part: 0 and 6 (finished, but rows are failed or unknown: a person decides about --retry) end
# the task. 2 (the request is wrong) and 4 (the campaign as a whole is wrong) cancel the array. After all other
# codes, the task is tried again: 7 (another attempt has the ledger), 3 (stopped), 1 and 5 (network and disk).
#
# To stop a part, run scancel. After broadside control stop (3), the task starts the part again.
#
# If a node cannot read WORK or has no broadside, the task goes back to the queue, for another node, and the log
# says so. The task ends with 5 when it has been on ATTEMPTS nodes (default: 20).
#SBATCH --job-name=broadside
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
part=$SLURM_ARRAY_TASK_ID
script=$WORK/frozen/part.sh

# Puts the task back into the queue and excludes this node. Slurm then ends this script.
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

# A shell that does not find the script may end with 2, which would cancel the array.
look() {
    cat -- "$script" >/dev/null || elsewhere "$script can't be read there"
}

code=1
for ((attempt = 1; attempt <= ${ATTEMPTS:-20}; attempt++)); do
    look
    # To end a task (requeue, scancel, a drained node), Slurm sends SIGTERM to each of its processes: this script
    # ends, and the run waits for the responses in flight. The freeze wrote part.sh, which checks the list, and
    # refuses to begin a part again if its ledger was lost (exit 2).
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
