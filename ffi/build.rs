//! Names the shared library by the version of its ABI, as loaders look for it, and lets them keep
//! it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let major = env!("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsparserl.so.{major}");
        // Threads of the library outlive `dlclose`, and need its code.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
