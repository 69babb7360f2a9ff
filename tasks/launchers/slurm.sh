# Trap both signals, because untrapped either would end this shell. Slurm sends USR1 shortly before the time limit, and
# TERM when the job is cancelled; the ranks receive TERM as well, and this shell waits for the checkpoint that they then
# write.
leaving=
trap 'leaving=${leaving:-$SECONDS}' USR1
trap ':' TERM

export WORLD_SIZE="$SLURM_NTASKS"
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
if [ "$SLURM_JOB_NUM_NODES" = 1 ]; then
    export MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo
else
    MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    export MASTER_ADDR
fi

echo "Slurm job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST: $SLURM_NTASKS ranks"
# SLURM_* variables are hidden from the ranks: with them, Lightning would handle signals and checkpoints itself.
srun --export=ALL --kill-on-bad-exit=1 --distribution=block --cpus-per-task="$SLURM_CPUS_PER_TASK" bash -c '
    export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" GROUP_RANK="$SLURM_NODEID"
    unset "${!SLURM_@}"
    exec "$@"
' rank "$python" -m pipelines.training.ranks.rank "$order" &
step=$!
while kill -0 "$step" 2>/dev/null; do
    if [ -n "$leaving" ]; then
        # ranks that hang must not fail the job: requeueing ends them
        if [ $((SECONDS - leaving)) -ge "$patience" ]; then break; fi
        # repeatedly: a step that is still starting does not receive the first signal
        if [ $(((SECONDS - leaving) % 5)) -eq 0 ]; then scancel --quiet --signal=TERM "$SLURM_JOB_ID"; fi
    fi
    sleep 1
done
if kill -0 "$step" 2>/dev/null; then
    status=143
else
    wait "$step"
    status=$?
fi
if [ "$status" -eq 0 ] || [ -e "$failure" ]; then exit "$status"; fi

# The ranks ended early. If that was requested, and the job is not being cancelled, it is requeued with the same id and
# the same log; a rank that failed ends the job.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    if job=$(scontrol --oneliner show job "$SLURM_JOB_ID"); then
        if [[ $job != *" JobState=RUNNING "* ]]; then exit "$status"; fi
        if [ -z "$leaving" ] && [[ $job != *" PreemptTime="[0-9]* ]]; then exit "$status"; fi
        if [ -n "$leaving" ] && [ "$attempt" -eq 1 ]; then
            newest=$(ls "$checkpoints" 2>/dev/null | grep '^step-' | sort | tail -n 1)
            if [ -e "$reached" ] && [ "$(cat "$reached")" = "$newest" ]; then
                echo "two time limits have passed without a checkpoint in between:" \
                    "raise training.launcher.time or training.launcher.warning"
                exit 1
            fi
            echo "$newest" > "$reached"
        fi
        # Slurm ends this shell during the sleep
        scontrol requeue "$SLURM_JOB_ID" && sleep 600
    fi
    sleep 5
done
echo "Slurm did not answer when the job was to be requeued"
exit "$status"
