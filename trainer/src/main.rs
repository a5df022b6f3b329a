//! `sparserl-trainer`: the stages of training as commands, each of which can be interrupted and
//! goes on where it stopped.

mod commands;
mod console;
mod interruption;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sparserl_core::message;

use commands::{
    Ablate, Archive, Collect, Compile, Evaluate, Export, FitCost, Iterate, PassAtK, Portfolio, Ppo,
    Prepare, Replay, SERVE, StageArgs, Table, Tables, Train,
};
use sparserl_trainer::configuration::Stage;

/// Trains policies that write CUDA kernels for sparse matrices.
#[derive(Parser)]
#[command(name = "sparserl-trainer", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure programs on the matrices of a corpus, and record what comes of them.
    ///
    /// Any number of processes may collect into one folder at the same time, on any machines that
    /// see it, as a job array does. Started again, it goes on where it stopped.
    ///
    /// By Slurm: `sbatch --array=0-15 --gpus=1 --wrap 'sparserl-trainer collect FILE -o FOLDER'`.
    /// On all GPUs of nodes, by MPI: `mpirun sh -c 'exec sparserl-trainer collect FILE -o FOLDER
    /// --device $OMPI_COMM_WORLD_LOCAL_RANK'`.
    Collect(Collect),
    /// List the programs of which the fastest is, on the matrices of a dataset, on average fastest.
    ///
    /// `collect` measures all of a list on all matrices, and `evaluate` compares fixed choices of
    /// it.
    Portfolio(Portfolio),
    /// Keep recordings in little space, medians in the place of samples; and, beside them, the
    /// results of an evaluation.
    Archive(Archive),
    /// Train a policy from recordings: prepare, all stages, reinforcement if there is one, export.
    ///
    /// Started again, it goes on where it stopped.
    Train(Train),
    /// Compile measured programs, and keep their resource usage beside their recordings: registers,
    /// spills, shared memory, size of the cubin.
    ///
    /// A program is compiled once, for the smallest matrix that it was measured on; no GPU has to
    /// be there. What is compiled before `prepare` or `train` is learned. Run one process at a time
    /// on a folder: a second would overwrite what the first has written. Started again, it goes on
    /// where it stopped, or to more programs.
    Compile(Compile),
    /// Make a dataset of recordings: all that is trained on, so that no matrix is made again.
    ///
    /// What the file has of these recordings already is not made again.
    Prepare(Prepare),
    /// Train a network to write programs, and to guess what the cost model says of them.
    Pretrain(StageArgs),
    /// Train a network to write the programs that are near the best of their case.
    Sft(StageArgs),
    /// Train a network to say how fast programs are.
    Value(StageArgs),
    /// Improve a network by what becomes of the programs that it writes: on a GPU, or as recorded.
    Ppo(Ppo),
    /// Improve a policy by rounds of measuring what it writes and learning from it, until a round
    /// gains little.
    ///
    /// Started again, it goes on where it stopped.
    Iterate(Iterate),
    /// Compare what chooses programs, on real matrices that none of it has learned from.
    ///
    /// The oracle is a search that starts from all picks; its best and the picks are then timed in
    /// turn once more. Processes share the work as those of `collect` do.
    Evaluate(Evaluate),
    /// Train a policy without some of its parts, and say what each of them brings.
    ///
    /// Any number of processes may share one folder, each at work on a network of its own: one for
    /// each GPU, or several where nothing is measured and networks are small. Started again, it
    /// goes on where it stopped.
    Ablate(Ablate),
    /// Sample programs from policies, under the mask and freely, and say how many compile and are
    /// right: pass@k.
    ///
    /// Started again, it goes on where it stopped.
    PassAtK(PassAtK),
    /// Fit the constants of the cost model to recordings, and say how well they rank programs of
    /// families that were left out.
    FitCost(FitCost),
    /// Write a network as the two ONNX graphs that a policy is used as.
    Export(Export),
    /// Let networks choose among what was measured on real matrices, without a GPU.
    Replay(Replay),
    /// Make the table of an evaluation again, from what its choosers picked.
    Table(Table),
    /// Make all tables that a policy is judged by, with a GPU: what parts of its training bring,
    /// what it chooses beside a search, and how many of its programs are right.
    ///
    /// It prepares a dataset and does the work of `ablate`, `evaluate` and `pass-at-k`, each in a
    /// folder of its own. Started again, it goes on where it stopped.
    Tables(Tables),
    /// A process of another command.
    #[command(hide = true, name = SERVE)]
    Serve {
        /// What to do.
        role: Vec<String>,
    },
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    sparserl_gpu::panics::hide_caught();
    let result = match command {
        Command::Collect(args) => args.run(),
        Command::Portfolio(args) => args.run(),
        Command::Archive(args) => args.run(),
        Command::Train(args) => args.run(),
        Command::Compile(args) => args.run(),
        Command::Prepare(args) => args.run(),
        Command::Pretrain(args) => args.run(Stage::Pretrain),
        Command::Sft(args) => args.run(Stage::Sft),
        Command::Value(args) => args.run(Stage::Value),
        Command::Ppo(args) => args.run(),
        Command::Iterate(args) => args.run(),
        Command::Evaluate(args) => args.run(),
        Command::Ablate(args) => args.run(),
        Command::PassAtK(args) => args.run(),
        Command::Export(args) => args.run(),
        Command::Replay(args) => args.run(),
        Command::Table(args) => args.run(),
        Command::Tables(args) => args.run(),
        Command::FitCost(args) => args.run(),
        Command::Serve { role } => sparserl_gpu::serve::serve(&role).map_err(Into::into),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::say(&format!("error: {}", message::with_causes(error.as_ref())));
            ExitCode::FAILURE
        }
    }
}
