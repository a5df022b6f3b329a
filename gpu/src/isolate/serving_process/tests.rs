//! Children here are shell scripts: `cat` answers every request with itself.

use super::*;

type Echo = ServingProcess<String, String>;

fn start(script: &str, limits: Limits) -> Echo {
    // The role is `$0` of the script.
    ServingProcess::start(&ServerCommand::new("sh", ["-c", script]), &["role"], limits).unwrap()
}

fn echo() -> Echo {
    start("cat >&0", Limits::default())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(200)
}

fn late() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn ask(server: &mut Echo, request: &str, blobs: &[&[u8]]) -> Result<Vec<Vec<u8>>, ServingError> {
    server.send(&request.to_owned(), blobs, late())?;
    let (answer, blobs) = server.receive(late())?;
    assert_eq!(answer, request);
    Ok(blobs)
}

/// Neither running nor a zombie.
fn is_gone(id: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn requests_and_blobs_come_back() {
    let mut server = echo();
    assert!(ask(&mut server, "", &[]).unwrap().is_empty());
    assert_eq!(ask(&mut server, "empty", &[b""]).unwrap(), [b""]);
    let many: Vec<Vec<u8>> = (0..300u16).map(|i| vec![i as u8; usize::from(i)]).collect();
    let slices: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    assert_eq!(ask(&mut server, "many", &slices).unwrap(), many);
}

#[test]
fn an_interruption_of_the_parents_group_is_not_for_the_child() {
    let mut server = echo();
    let child = rustix::process::getpgid(Some(Pid::from_child(&server.child))).unwrap();
    assert_eq!(child, Pid::from_child(&server.child));
    assert_ne!(child, rustix::process::getpgrp());
    assert!(ask(&mut server, "still there", &[]).is_ok());
}

#[test]
fn blobs_larger_than_the_sockets_buffer_come_back() {
    // Takes everything before it answers, as a real server does: four numbers, the header, the
    // blob.
    let script = "f=$(mktemp); head -c $((32 + 6 + 8000000)) >$f; cat $f >&0; rm $f";
    let mut server = start(script, Limits::default());
    let blob: Vec<u8> = (0..8_000_000u32).map(|i| (i / 7) as u8).collect();
    assert_eq!(ask(&mut server, "large", &[&blob]).unwrap(), [blob]);
}

#[test]
fn a_silent_child_is_killed_at_the_deadline() {
    for script in ["exec sleep 1000", "kill -STOP $$", "trap '' TERM INT; while :; do :; done"] {
        let mut server = start(script, Limits::default());
        let begin = Instant::now();
        server.send(&"hello".to_owned(), &[], late()).unwrap();
        assert!(matches!(server.receive(soon()), Err(ServingError::TimedOut)), "{script}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{script}: {:?}", begin.elapsed());
        assert!(is_gone(server.id()), "{script}");
        let again = server.send(&"hello".to_owned(), &[], late());
        assert!(matches!(again, Err(ServingError::Died { .. })), "{again:?}");
    }
    ask(&mut echo(), "the next one works", &[]).unwrap();
}

#[test]
fn a_child_that_does_not_read_is_killed_at_the_deadline() {
    let mut server = start("exec sleep 1000", Limits::default());
    let sent = server.send(&"hello".to_owned(), &[&vec![0; 32 << 20]], soon());
    assert!(matches!(sent, Err(ServingError::TimedOut)), "{sent:?}");
    assert!(is_gone(server.id()));
}

#[test]
fn the_deadline_holds_over_many_small_reads() {
    // Each byte comes well before the deadline, the whole answer does not.
    let script = "printf 'SPRLFRM\\001' >&0; while :; do printf '\\000' >&0; sleep 0.05; done";
    let mut server = start(script, Limits::default());
    let begin = Instant::now();
    assert!(matches!(server.receive(soon()), Err(ServingError::TimedOut)));
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn a_dead_child_leaves_its_status_and_its_last_words() {
    let mut server = start("seq 100000 >&2; echo 'out of luck' >&2; exit 7", Limits::default());
    let error = server.receive(late()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("exit status: 7") && text.ends_with("100000; out of luck"), "{text}");
    let ServingError::Died { stderr, has_exited, .. } = error else { panic!("{error:?}") };
    assert!(has_exited);
    assert_eq!(stderr.len(), KEPT_STDERR);
    assert!(is_gone(server.id()));

    let mut server = start("kill -SEGV $$", Limits::default());
    let error = server.receive(late()).unwrap_err();
    assert!(matches!(error, ServingError::Died { has_exited: false, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("signal: 11"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn sending_to_a_dead_child_is_an_error() {
    let mut server = start("exit 3", Limits::default());
    let blob = vec![0; 32 << 20];
    let sent = server.send(&"hello".to_owned(), &[&blob], late());
    assert!(
        matches!(&sent, Err(ServingError::Died { status, .. }) if status.contains('3')),
        "{sent:?}"
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    for script in [
        "echo 'usage: program COMMAND [OPTIONS]' >&0; exec sleep 1000",
        "printf 'SPRLFRM\\001%099d' 0 >&0",
    ] {
        let mut server = start(script, Limits::default());
        let answer = server.receive(late());
        assert!(matches!(answer, Err(ServingError::Protocol { .. })), "{script}: {answer:?}");
        assert!(is_gone(server.id()));
    }
    let mut server = start("printf 'SPRL' >&0", Limits::default());
    assert!(matches!(server.receive(late()), Err(ServingError::Died { .. })));
}

#[test]
fn standard_output_is_not_the_connection() {
    let mut server = start("echo noise; cat >&0", Limits::default());
    ask(&mut server, "hello", &[]).unwrap();
}

#[test]
fn limits_hold_in_the_child() {
    // Asked for after the first request, by when they hold.
    let script = "head -c 1 >/dev/null; ulimit -v >&2; ulimit -c >&2; exit 1";
    let mut server = start(script, Limits { address_space: Some(1 << 30) });
    server.send(&"hello".to_owned(), &[], late()).unwrap();
    let text = server.receive(late()).unwrap_err().to_string();
    assert!(text.ends_with(&format!(": {}; 0", (1 << 30) / 1024)), "{text}");
}

#[test]
fn the_role_follows_the_arguments() {
    let command = ServerCommand::new("sh", ["-c", "echo $0 $@ >&2", "leading"]);
    let mut server = Echo::start(&command, &["device", "0"], Limits::default()).unwrap();
    let text = server.receive(late()).unwrap_err().to_string();
    assert!(text.ends_with(": leading device 0"), "{text}");
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn freed_memory_is_kept() {
    // The arena's top stays as it is when a large block is freed.
    let script = "import ctypes, sys\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = \
                  libc.sbrk.restype = ctypes.c_void_p\nlibc.free.argtypes = [ctypes.c_void_p]\n\
                  block = libc.malloc(8 << 20)\ntop = libc.sbrk(0)\nlibc.free(block)\n\
                  print(block < top and libc.sbrk(0) == top, file=sys.stderr)";
    let command = ServerCommand::new("python3", ["-c", script]);
    let kept = |command: &ServerCommand| {
        let mut server = Echo::start(command, &[], Limits::default()).unwrap();
        let text = server.receive(late()).unwrap_err().to_string();
        text.ends_with(": True")
    };
    assert!(!kept(&command));
    assert!(kept(&command.keeping_freed_memory()));
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let command = ServerCommand::new("/nonexistent/program", ["serve"]);
    let error = Echo::start(&command, &["role"], Limits::default()).unwrap_err();
    assert!(matches!(error, ServingError::Start { .. }));
    let text = error.to_string();
    assert!(text.contains("`/nonexistent/program`") && text.lines().count() == 1, "{text}");
}

#[test]
fn dropping_kills() {
    let server = start("exec sleep 1000", Limits::default());
    let id = server.id();
    assert!(!is_gone(id));
    drop(server);
    assert!(is_gone(id));
}
