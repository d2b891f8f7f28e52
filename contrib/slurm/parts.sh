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
#SBATCH --job-name=broadside
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
part=$SLURM_ARRAY_TASK_ID

code=1
for ((attempt = 1; attempt <= ${ATTEMPTS:-20}; attempt++)); do
    # Where the task is to end (requeue, scancel, a drained node) Slurm sends SIGTERM to each of its processes:
    # this script ends, and the run awaits what is in flight. The freeze wrote part.sh: it checks the list, and
    # refuses to begin a part again whose ledger was lost (exit 2).
    # shellcheck disable=SC2086
    sh "$WORK/frozen/part.sh" "$part" "$PARTS" --rate "$RATE" $CANARY --log json --progress none
    code=$?
    case $code in
        0 | 6) exit 0 ;;
        2 | 4)
            scancel "$SLURM_ARRAY_JOB_ID"
            exit "$code"
            ;;
    esac
    sleep "${PAUSE:-10}"
done
exit "$code"
