#!/bin/bash
# A run of laconic by 64 processes on 4 nodes of a cluster with SLURM:  sbatch examples/slurm.sh big.toml
#
# The first submission begins; every later one goes on from the last checkpoint, on as many nodes as it is given. When
# the time is nearly up the job asks for the next one, so a long run is submitted once.
#SBATCH --job-name=laconic
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --open-mode=append
set -euo pipefail
run=${1:?which run: sbatch examples/slurm.sh big.toml}

# An environment on the shared file system, with the cluster's MPI, made in a clone:
#   module load mpich && python -m venv ~/laconic && ~/laconic/bin/pip install . pymetis && \
#   MPICC=$(which mpicc) ~/laconic/bin/pip install --no-binary mpi4py mpi4py
source "${LACONIC_VENV:-$HOME/laconic}/bin/activate"

# One thread a process; machine code on the shared file system, compiled once for each kind of processor.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

kept=$(python - "$run" <<'PYTHON'
import pathlib, sys, tomllib
path = pathlib.Path(sys.argv[1])
print(path.parent / tomllib.loads(path.read_text())["run"].get("checkpoint", "."))
PYTHON
)
resume=()
[ -f "$kept/checkpoint.json" ] && resume=(--resume)

again() { echo "time is nearly up: the next job goes on"; sbatch --dependency="afterany:$SLURM_JOB_ID" "$0" "$run"; }
trap again USR1

srun laconic run "$run" --engine mpi "${resume[@]}" &
wait $! || wait $!  # the first wait ends when the signal comes
