//! What goes wrong is said in one line, and nothing is written.

use std::fs;
use std::process::Command;

use crate::broken_files;
use crate::support::{PROGRAM, Place, matrix, run};

#[test]
fn broken_files_give_one_line_with_the_line_number() {
    let files = broken_files::all();
    assert!(files.len() >= 30);
    for (name, bytes, line, text) in files {
        let place = Place::new();
        fs::write(place.path(name), bytes).unwrap();
        let at = if line == 0 { format!("{name}: ") } else { format!("{name}:{line}: ") };
        for command in ["gen", "inspect"] {
            let error = place.fail(&format!("{command} {name} --duplicates refuse"));
            assert!(error.starts_with(&format!("error: {at}")), "{error}");
            assert!(error.contains(text), "{error}");
        }
        assert_eq!(place.names(""), [name], "nothing is written");
    }
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::new();
    for command in ["gen", "inspect"] {
        let error = place.fail(&format!("{command} no/such.mtx"));
        assert!(error.starts_with("error: no/such.mtx: cannot read the file"), "{error}");
    }
    assert!(place.names("").is_empty());
}

#[test]
fn what_is_no_file_is_called_what_it_is() {
    let place = Place::new();
    fs::create_dir(place.path("graph.mtx")).unwrap();
    for name in ["graph.mtx", "."] {
        let error = place.fail(&format!("gen {name}"));
        assert!(error.starts_with(&format!("error: {name}: is a folder")), "{error}");
    }
    let error = place.fail("gen stencil6:10x10");
    let expected =
        "error: stencil6:10x10: no such file or folder, and no family; families are stencil5:";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn what_may_have_no_end_is_refused_or_bounded() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.mtx")).unwrap();
    let error = place.fail("gen zero.mtx");
    assert!(error.starts_with("error: zero.mtx: is no regular file; give - to read"), "{error}");
    // What begins as no matrix does is not read on, whatever may be held.
    let mut command = place.command("gen -");
    let zeros = run(command.stdin(fs::File::open("/dev/zero").unwrap()));
    assert_eq!(zeros.code, Some(3), "{}", zeros.stderr);
    assert!(zeros.stderr.starts_with("error: -: unknown format"), "{}", zeros.stderr);
    let text = "%%MatrixMarket matrix coordinate real general\n%".to_owned() + &"x".repeat(2 << 20);
    fs::write(place.path("long"), text).unwrap();
    let mut command = place.command("gen - --memory 1M");
    let long = run(command.stdin(fs::File::open(place.path("long")).unwrap()));
    assert_eq!(long.code, Some(3), "{}", long.stderr);
    let start = "error: -: holds or decompresses to more than 1048576 bytes";
    assert!(long.stderr.starts_with(start), "{}", long.stderr);
    assert!(
        long.stderr.ends_with("or raise the limit; --memory BYTES raises it\n"),
        "{}",
        long.stderr
    );
    assert_eq!(place.names(""), ["long", "zero.mtx"]);
}

#[test]
fn what_has_a_file_read_is_said_by_the_commands_that_have_it() {
    let place = Place::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/files");
    for command in ["gen", "inspect"] {
        let error = place.fail(&format!("{command} {files}/several.tar.gz"));
        let says = "a.mtx, b.mtx; choose one, or unpack it; --member NAME chooses";
        assert!(error.ends_with(says), "{error}");
        let error = place.fail(&format!("{command} {files}/stencil.npz --member a.mtx"));
        let says = "is no archive, so that it has no `a.mtx`; leave --member out";
        assert!(error.ends_with(says), "{error}");
        let error = place.fail(&format!("{command} {files}/stencil.tar.gz --memory 64"));
        assert!(error.ends_with("or raise the limit; --memory BYTES raises it"), "{error}");
    }
}

#[test]
fn a_search_refuses_an_edited_kernel_by_an_option_that_it_has() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    place.run(&format!("gen {beam} --no-compile -o out/kernel"));
    fs::write(place.path("out/kernel/kernel.cu"), "edited").unwrap();
    let error = place.fail(&format!("tune {beam} -o out"));
    assert!(error.contains("out/kernel/kernel.cu: was edited"), "{error}");
    assert!(error.ends_with("or give --force to replace it"), "{error}");
    // It has none of the other files of a search.
    let error = place.fail(&format!("tune {beam} -o out --force"));
    assert!(error.contains("out: holds other files (no tune.json of ours)"), "{error}");
    assert_eq!(place.text("out/kernel/kernel.cu"), "edited");
}

#[test]
fn no_command_reads_a_device_or_waits_for_a_pipe() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.cu")).unwrap();
    let pipe = place.path("pipe.skl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let beam = matrix("beam.mtx");
    for (arguments, named) in [
        ("report /dev/zero".to_owned(), "/dev/zero"),
        ("report pipe.skl".to_owned(), "pipe.skl"),
        ("setup --wheel /dev/zero --force".to_owned(), "/dev/zero"),
        ("setup --wheel pipe.skl --force".to_owned(), "pipe.skl"),
        (format!("verify --emulate zero.cu --matrix {beam}"), "zero.cu"),
        (format!("verify --emulate pipe.skl --matrix {beam}"), "pipe.skl"),
    ] {
        let run = run(place.command(&arguments).env("XDG_DATA_HOME", place.path("data")));
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
        assert!(run.stderr.starts_with(&format!("error: {named}: ")), "{}", run.stderr);
        assert!(run.stderr.contains("it is no regular file; name one"), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

/// Limits the address space, in which threads have their stacks.
#[cfg(target_os = "linux")]
#[test]
fn as_many_threads_work_as_have_room_and_without_memory_a_line_says_so() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let many = format!("inspect {beam} --threads 1000");
    let all = place.succeed(&format!("inspect {beam}"));
    for (limit, workers) in [("-v 1048576", "threads do"), ("-v 131072", "one thread does")] {
        let few = run(&mut place.limited(limit, &many));
        assert_eq!((few.code, &few.stdout), (Some(0), &all), "{}", few.stderr);
        let words = format!("{workers} all the work: the limit of addresses (`ulimit -v`)");
        assert!(few.stderr.starts_with("note: ") && few.stderr.contains(&words), "{}", few.stderr);
        assert_eq!(few.stderr.lines().count(), 1, "{}", few.stderr);
    }
    let large = "inspect hyper:200000000,9,9 --threads 2";
    let full = run(&mut place.limited("-v 524288", large));
    assert_eq!((full.code, full.stdout.as_str()), (Some(3), ""), "{}", full.stderr);
    let start = "error: hyper:200000000,9,9: takes about 0.8 GB, and 0.";
    assert!(full.stderr.starts_with(start), "{}", full.stderr);
    assert_eq!(full.stderr.lines().count(), 1, "{}", full.stderr);
}

#[test]
fn folders_may_have_names_as_long_as_the_system_lets_them() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let gen_beam = format!("gen {beam} --no-compile --no-packed");
    for name in ["n".repeat(255), "ö".repeat(127)] {
        place.succeed(&format!("{gen_beam} -o {name}"));
        assert_eq!(place.names(&name), ["kernel.cu", "plan.json", "program.skl"]);
    }
    let error = place.fail(&format!("{gen_beam} -o {}", "n".repeat(256)));
    assert!(error.ends_with("n: is too long a name for a folder; choose another with --output"));
    assert_eq!(place.names("").len(), 2);
}

#[test]
fn a_file_that_claims_a_hundred_times_its_size_takes_no_memory() {
    let place = Place::new();
    let rows = "title\n 9 1 1 1 0\nrua 4000000000 3 4 0\n\
                (4I4)           (4I4)           (4E8.1)\n   1   3   3   5\n";
    fs::write(place.path("rows.rua"), rows).unwrap();
    let error = place.fail("inspect rows.rua");
    assert!(error.contains("rows.rua:3: 4000000000 × 3 is absurdly large for 4"), "{error}");
    // One entry, and line feeds that shrink by a thousand times.
    let mut bomb = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n".to_vec();
    bomb.resize(32 << 20, b'\n');
    fs::write(place.path("bomb.mtx.gz"), broken_files::gzip(&bomb)).unwrap();
    let error = place.fail("inspect bomb.mtx.gz");
    assert!(error.contains("bytes, which the 1 entries of its size line cannot take"), "{error}");
}

#[test]
fn a_file_name_with_a_line_break_does_not_break_the_line() {
    let place = Place::new();
    let run = run(place.command("gen").arg("no\nsuch.mtx"));
    assert_eq!(run.code, Some(3));
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
}

#[test]
fn values_too_large_for_single_precision_are_named() {
    let place = Place::new();
    let text = "%%MatrixMarket matrix coordinate real general\n9 9 2\n1 1 1\n7 3 1e39\n";
    fs::write(place.path("large.mtx"), text).unwrap();
    let error = place.fail("gen large.mtx");
    assert_eq!(error, "error: large.mtx: entry (7, 3) is 1e39, too large for f32; use --dtype f64");
    assert_eq!(place.names(""), ["large.mtx"]);
    place.succeed("gen large.mtx --dtype f64 --no-compile");
}

#[test]
fn values_too_small_for_single_precision_are_counted() {
    let place = Place::new();
    let text = "%%MatrixMarket matrix coordinate real general\n9 9 3\n1 1 1\n7 3 1e-300\n8 8 0\n";
    fs::write(place.path("small.mtx"), text).unwrap();
    let said = "note: 1 value is too small for f32 and taken as 0; --dtype f64 keeps them";
    let single = place.run("gen small.mtx --no-compile");
    assert!(single.stderr.contains(said), "{}", single.stderr);
    let double = place.run("gen small.mtx --dtype f64 --no-compile");
    assert!(!double.stderr.contains("too small"), "{}", double.stderr);
}

#[test]
fn a_file_name_tells_a_terminal_nothing() {
    let place = Place::new();
    let run = run(place.command("inspect").arg("no\x1b[2Jsuch.mtx"));
    assert!(run.stderr.starts_with("error: no?[2Jsuch.mtx: "), "{}", run.stderr);
    fs::copy(matrix("beam.mtx"), place.path("a\x1b[2Jb.mtx")).unwrap();
    let run = self::run(place.command("inspect").arg("a\x1b[2Jb.mtx"));
    assert_eq!(run.code, Some(0));
    assert!(!run.stdout.contains('\x1b') && run.stdout.contains("a?[2Jb.mtx"), "{}", run.stdout);
}

#[test]
fn a_folder_that_is_not_ours_is_kept() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/thesis.tex"), "years").unwrap();
    let error = place.fail(&format!("gen {beam} --no-compile -o mine"));
    assert!(error.contains("mine: holds thesis.tex, ") && error.contains("--output"), "{error}");
    assert_eq!(place.text("mine/thesis.tex"), "years");
    let error = place.fail(&format!("tune {beam} -o mine"));
    assert!(error.contains("mine: holds other files (no tune.json of ours)"), "{error}");
    assert_eq!(place.names("mine"), ["thesis.tex"]);

    fs::write(place.path("mine/plan.json"), "{\"format\": \"someone else's\"}").unwrap();
    place.fail(&format!("gen {beam} --no-compile -o mine"));

    // Not even beside what an earlier run wrote.
    fs::remove_file(place.path("mine/plan.json")).unwrap();
    fs::remove_file(place.path("mine/thesis.tex")).unwrap();
    place.succeed(&format!("gen {beam} --no-compile --no-packed -o mine"));
    fs::copy(&beam, place.path("mine/beam.mtx")).unwrap();
    let error = place.fail("gen mine/beam.mtx --no-compile -o mine");
    assert!(error.contains("mine: holds beam.mtx, "), "{error}");
    assert!(place.path("mine/beam.mtx").exists());

    fs::write(place.path("file"), "").unwrap();
    let error = place.fail(&format!("gen {beam} --no-compile -o file"));
    assert!(error.contains("is not a folder"), "{error}");
    place.fail(&format!("gen {beam} --no-compile -o ."));
    assert_eq!(place.names(""), ["file", "mine"]);
    assert_eq!(place.names("mine"), ["beam.mtx", "kernel.cu", "plan.json", "program.skl"]);
}

#[test]
fn a_missing_gpu_is_said_before_a_missing_compiler() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    fs::create_dir(place.path("c")).unwrap();
    fs::write(place.path("c/k.skl"), PROGRAM).unwrap();
    for arguments in [
        format!("bench {beam} --record kept"),
        format!("tune {beam} --budget 1s"),
        format!("verify c/k.skl --matrix {beam}"),
        format!("eval --candidates c --matrix {beam} -o out.json --record kept"),
    ] {
        let mut command = place.command_without_nvrtc(&arguments);
        // Where there are GPUs, none is seen.
        let run = run(command.env("CUDA_VISIBLE_DEVICES", ""));
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
        let start = "error: no GPU to measure on: no CUDA d";
        assert!(run.stderr.starts_with(start), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    assert_eq!(place.names(""), ["c", "nothing"], "nothing is written");
}

#[test]
fn a_wrong_command_line_is_2() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    for arguments in [
        "".to_owned(),
        "gen".to_owned(),
        "frobnicate".to_owned(),
        format!("gen {beam} --op spmm"),
        format!("gen {beam} --cols 8"),
        format!("gen {beam} --op spmm --cols 0"),
        format!("gen {beam} --op spmm --cols 65537"),
        format!("gen {beam} --dtype f8"),
        format!("gen {beam} --arch sm_91"),
        format!("tune {beam} --op spmm"),
        format!("tune {beam} --budget 5"),
        format!("tune {beam} --store w.redb --no-store"),
        format!("gen {beam} --candidates 0"),
        format!("gen {beam} --json --quiet"),
        format!("inspect {beam} --embedding"),
        format!("inspect {beam} --threads 0"),
        format!("gen {beam} --memory 5X"),
        format!("gen {beam} --packed --no-packed"),
    ] {
        let run = place.run(&arguments);
        assert_eq!(run.code, Some(2), "{arguments}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments}");
    }
    assert!(place.names("").is_empty());
}

#[test]
fn the_version_names_the_language() {
    let version = Place::new().succeed("--version");
    let language = sparserl_core::language::LANGUAGE_VERSION;
    assert!(version.contains(&format!("kernel language {language}")), "{version}");
    assert_eq!(version.lines().count(), 1);
}
