//! A process of the pool: compiles what it is asked to.

use std::io;

use super::message::{Answer, Build, CompileTarget, Failure, Request};
use crate::compile::nvrtc::{Compilers, Nvrtc};
use crate::isolate::Connection;

/// Answers until there are no more requests.
pub(crate) fn serve() -> io::Result<()> {
    let mut client = Connection::<Request, Answer>::inherited()?;
    let mut compilers = None;
    while let Some((request, _)) = client.receive()? {
        match answer(request, &mut compilers) {
            Ok((answer, code)) => client.send(&answer, &[&code])?,
            Err(failure) => client.send(&Answer::Failed(failure), &[])?,
        }
    }
    Ok(())
}

/// With the machine code, which is empty for other requests.
fn answer(
    request: Request,
    compilers: &mut Option<Compilers>,
) -> Result<(Answer, Vec<u8>), Failure> {
    let compilers = match compilers {
        Some(found) => found,
        None => compilers.insert(Compilers::discover()?),
    };
    match request {
        Request::Discover => {
            let found = |nvrtc: &Nvrtc| (nvrtc.version(), nvrtc.path().to_owned());
            Ok((Answer::Discovered(compilers.all().iter().map(found).collect()), Vec::new()))
        }
        Request::Build(target) => {
            let nvrtc = choose(compilers, target)?;
            let build = Build { version: nvrtc.version(), id: nvrtc.build()?.to_owned() };
            let looked = compilers.looked().map(<[_]>::to_vec);
            Ok((Answer::Build(build, looked), Vec::new()))
        }
        Request::Compile { source, kernel, target, options } => {
            let nvrtc = choose(compilers, target)?;
            let cubin = nvrtc.compile(&source, &kernel, target.architecture, &options)?;
            let mut parts = cubin.into_parts();
            let code = std::mem::take(&mut parts.bytes);
            Ok((Answer::Compiled(parts), code))
        }
        Request::CompilePtx { source, kernel, target, options } => {
            let nvrtc = choose(compilers, target)?;
            let ptx = nvrtc.compile_ptx(&source, &kernel, target.architecture, &options)?;
            Ok((Answer::Ptx, ptx.into_bytes()))
        }
    }
}

fn choose(compilers: &Compilers, target: CompileTarget) -> Result<&Nvrtc, Failure> {
    Ok(compilers.choose(target.architecture, target.driver_major)?)
}
